//! Every kernel's WGSL is valid, alone and fused, and binds what its description says.

use naga::valid::{Capabilities, ValidationFlags, Validator};
use vramp_kernels::head::load_here::LOAD;
use vramp_kernels::{Recipe, head, pixel};
use vramp_plan::{Binding, Format, Shader};

fn validate(shader: &Shader) {
    let module = naga::front::wgsl::parse_str(&shader.wgsl)
        .unwrap_or_else(|e| panic!("{}\n{}", e.emit_to_string(&shader.wgsl), shader.wgsl));
    Validator::new(ValidationFlags::all(), Capabilities::empty())
        .validate(&module)
        .unwrap_or_else(|e| panic!("{}: {e:?}\n{}", shader.name, shader.wgsl));
    let mut bound: Vec<_> = module
        .global_variables
        .iter()
        .filter_map(|(_, v)| Some((v.binding.as_ref()?.binding, v.space, v.ty)))
        .collect();
    bound.sort_by_key(|(at, ..)| *at);
    assert_eq!(bound.len(), shader.bindings.len());
    for ((at, space, ty), binding) in bound.into_iter().zip(&shader.bindings) {
        let matches = match (space, binding) {
            (naga::AddressSpace::Storage { access }, Binding::Read) => !access.contains(naga::StorageAccess::STORE),
            (naga::AddressSpace::Storage { access }, Binding::Write) => access.contains(naga::StorageAccess::STORE),
            (naga::AddressSpace::Uniform, Binding::Params { bytes }) => {
                // The CPU writes exactly as many bytes as the shader declares.
                let mut layouter = naga::proc::Layouter::default();
                layouter.update(module.to_ctx()).expect("the module is valid");
                layouter[ty].size == *bytes
            }
            _ => false,
        };
        assert!(matches, "{}: binding {at} is {space:?}, described as {binding:?}", shader.name);
    }
}

#[test]
fn every_pixel_function_is_valid_after_a_load_and_before_every_gather() {
    for function in pixel::ALL {
        Recipe::of(&LOAD).then(function).shaders(function.name).iter().for_each(validate);
        for head in head::ALL.iter().filter(|h| h.source) {
            Recipe::of(head).before_head(function).shaders(head.name).iter().for_each(validate);
        }
    }
}

#[test]
fn every_head_is_valid_alone_and_with_every_function_twice() {
    for head in head::ALL {
        Recipe::of(head).shaders(head.name).iter().for_each(validate);
        for function in pixel::ALL {
            Recipe::of(head).then(function).then(function).shaders(head.name).iter().for_each(validate);
        }
    }
}

#[test]
fn a_head_of_several_pictures_is_valid_with_each_number_of_them() {
    let (compositor, most) = (&head::compositor::COMPOSITOR, head::compositor::MOST_PICTURES);
    for pictures in 0..most {
        let shaders = Recipe::of_several(compositor, pictures).then(&pixel::mix::MIX).shaders(compositor.name);
        shaders.iter().for_each(validate);
        let read = shaders[0].bindings.iter().filter(|binding| **binding == Binding::Read).count();
        // The source, the others, the image that is mixed in, and small data.
        assert_eq!(read, 1 + pictures + 2);
    }
}

#[test]
fn everything_at_once_is_valid() {
    let mut recipe = Recipe::of(&LOAD);
    for function in pixel::ALL {
        recipe = recipe.then(function);
    }
    recipe.shaders("all").iter().for_each(validate);
}

#[test]
fn every_pair_of_formats_is_valid_around_every_head() {
    for (from, into) in Format::RANKED.into_iter().flat_map(|from| Format::RANKED.map(|into| (from, into))) {
        for head in head::ALL {
            let recipe = Recipe::of(head).reading(from).writing(into).then(&pixel::gray::GRAY);
            let recipe = if head.source { recipe.before_head(&pixel::curve::CURVE) } else { recipe };
            recipe.shaders(head.name).iter().for_each(validate);
        }
    }
}
