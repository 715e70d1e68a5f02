// What TensorFlow.js's WebGPU backend takes for the works of `vramp bench tensor`, through Dawn, in CPU time of the
// process: on a software driver that is where the work is done. Needs `npm install` in the folder that it is run from,
// and a Vulkan driver that Dawn takes (Mesa 25: scripts/lavapipe25.sh). Prints one line a measurement: peer, work,
// milliseconds of CPU time a call, the result read to the host. Names of works may be given. Run by
// `cargo bench --bench tensor`.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(path.join(process.cwd(), 'package.json'));
const { create, globals } = await import(pathToFileURL(require.resolve('webgpu')).href);
Object.assign(globalThis, globals);
const gpu = create([]);
Object.defineProperty(globalThis, 'navigator', { value: { gpu, userAgent: 'node' }, configurable: true });

const tf = require('@tensorflow/tfjs');
require('@tensorflow/tfjs-backend-webgpu');
if (!(await tf.setBackend('webgpu'))) {
  console.error('Dawn has no adapter: source the env.sh of Mesa 25 first');
  process.exit(1);
}
await tf.ready();

const only = process.argv.slice(2);
const milliseconds = 1000;

async function measure(work, call) {
  if (only.length > 0 && !only.includes(work)) return;
  await call();
  await call();
  const took = [];
  const end = performance.now() + milliseconds;
  while (performance.now() < end || took.length < 5) {
    const before = process.cpuUsage();
    await call();
    const used = process.cpuUsage(before);
    took.push((used.user + used.system) / 1000);
  }
  took.sort((one, other) => one - other);
  console.log(`tfjs-webgpu ${work} ${took[took.length >> 1].toFixed(4)}`);
}

async function read(tensor) {
  const values = await tensor.data();
  tensor.dispose();
  return values;
}

const noise = (shape, seed) => tf.randomUniform(shape, -1, 1, 'float32', seed);
const length = 262144;

for (const side of [512, 1024]) {
  const [a, b] = [noise([side, side], 1), noise([side, side], 2)];
  await measure(`matmul_f32_${side}`, () => read(tf.matMul(a, b)));
}
const x = noise([1024, 1024], 3);
await measure('softmax_1024x1024', () => read(tf.softmax(x)));
const chain = () => x.mul(1.2).add(0.1).relu().sub(0.3).tanh().mul(0.5).sigmoid().square();
await measure('elementwise8_1024x1024', () => read(tf.tidy(chain)));
const batch = Array.from({ length: 10 }, (_, seed) => noise([length], seed + 1));
const means = (tensors) => Promise.all(tensors.map((one) => tf.tidy(() => one.square().mean())).map(read));
await measure('square_mean_10x1MB', () => means(batch));
const host = Array.from({ length: 10 }, () => new Float32Array(length).fill(0.5));
await measure('square_mean_10x1MB_upload', () => {
  const made = host.map((values) => tf.tidy(() => tf.tensor1d(values).square().mean()));
  return Promise.all(made.map(read));
});
// Transfers and ops on a few values are left out: TensorFlow.js keeps such values on the host and computes there.
process.exit(0);
