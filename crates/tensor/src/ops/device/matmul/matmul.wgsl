// Matrix products: out[p, i, j] = finish(sum over k of a[p, i, k] * b[p, k, j]) for each product p.
//
// In: a and b, with a stride along each of their axes. Out: rows without gaps.
// Grid: one workgroup per tile of the result. Workgroups are numbered along a row of tiles, then by row of tiles, by
// part of k, and by product. An invocation computes $M rows of $N neighbours. Rows and columns past the edge are
// computed as copies of the last row or column and not stored, so that no loop has a branch.

@compute @workgroup_size($ACROSS, $DOWN)
fn main(
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let flat = group.x + group.y * groups.x;
    let tiles_across = (p.n + ($ACROSS * $N - 1u)) / ($ACROSS * $N);
    let tiles_down = (p.m + ($DOWN * $M - 1u)) / ($DOWN * $M);
    let across = flat % tiles_across;
    let row_of_tiles = flat / tiles_across;
    let part_and_product = row_of_tiles / tiles_down;
    let part = part_and_product % p.parts;
    let product = part_and_product / p.parts;
    let is_there = product < p.products;
    let row = (row_of_tiles % tiles_down) * ($DOWN * $M) + local.y * $M;
    let col = across * ($ACROSS * $N) + local.x * $N;
    let k_start = part * p.part_k;
    let k_end = select(0u, min(k_start + p.part_k, p.k), is_there);
$BODY
    if !is_there || row >= p.m || col >= p.n { return; }
    let out_at = (part * p.products + product) * p.m * p.n + row * p.n + col;
$STORE
}
