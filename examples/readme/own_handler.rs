use vramp::prelude::*;

struct SwapRedAndBlue;

impl SwapRedAndBlue {
    const ENTRY: Entry = Entry { name: "swap", spaces: &[Space::Cpu], kernel: KernelRule::None, ..Entry::FILTER };
}

impl FrameHandler for SwapRedAndBlue {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(mut frame) = call.take(0) else { return Ok(Flow::Filtered) };
        frame.edit(call.pool())?.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| pixel.swap(0, 2));
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

pub fn main() -> Result<(), Error> {
    let pipeline = Pipeline::parse("pattern size=320x240 frames=40 ! swap ! blur sigma=2 ! null");
    let mut pipeline = pipeline.register(&SwapRedAndBlue::ENTRY, |_| Ok(SwapRedAndBlue)).build()?;
    println!("{}", pipeline.plan());
    println!("{} frames", pipeline.run()?.frames_out);
    Ok(())
}
