//! A Vulkan driver as a compiler: makes compute pipelines and asks the driver what it made of them.
//!
//! RADV compiles for any of AMD's GPUs without one, if `RADV_FORCE_FAMILY` names it: its null hardware takes pipelines
//! and refuses work. `VK_KHR_pipeline_executable_properties` gives the figures and the disassembly of a pipeline.
//!
//! The device has the features that wgpu enables and that change code: robust access to buffers (version 2), zeroed
//! workgroup memory, integer dot products, and f16.

#![expect(unsafe_code, reason = "Vulkan's calls are unsafe")]

use std::ffi::{CStr, CString};

use anyhow::{Context as _, bail};
use ash::{Device, Entry, Instance, khr, vk};

use crate::spirv::Spirv;

/// What a driver made of one kernel.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compiled {
    /// Invocations of a wave.
    pub(crate) wave: u32,
    /// The driver's figures, by the driver's names.
    pub(crate) statistics: Vec<(String, u64)>,
    /// The driver's texts, such as `Assembly`.
    pub(crate) texts: Vec<(String, String)>,
}

/// A device of a driver, opened to compile.
pub(crate) struct Compiler {
    // Dropped by hand, in the order of their dependence.
    device: Device,
    executables: khr::pipeline_executable_properties::Device,
    instance: Instance,
    _entry: Entry,
    /// The GPU that the driver compiles for, as the driver names it.
    pub(crate) gpu: String,
    /// The driver with its version.
    pub(crate) driver: String,
}

impl Compiler {
    /// Opens the first device that the Vulkan loader lists. The environment chooses the driver.
    pub(crate) fn open() -> anyhow::Result<Compiler> {
        // SAFETY: the loader is a library that initialises nothing but itself.
        let entry = unsafe { Entry::load() }.context("no Vulkan loader; install libvulkan1")?;
        let about = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let wanted = vk::InstanceCreateInfo::default().application_info(&about);
        // SAFETY: `wanted` and what it points to live until the call returns.
        let instance = unsafe { entry.create_instance(&wanted, None) }.context("no Vulkan instance")?;
        let opened = open_on(&instance);
        match opened {
            Ok((device, gpu, driver)) => {
                let executables = khr::pipeline_executable_properties::Device::new(&instance, &device);
                Ok(Compiler { device, executables, instance, _entry: entry, gpu, driver })
            }
            Err(error) => {
                // SAFETY: nothing was made with the instance.
                unsafe { instance.destroy_instance(None) };
                Err(error)
            }
        }
    }

    /// Compiles a kernel.
    pub(crate) fn compile(&self, kernel: &Spirv) -> anyhow::Result<Compiled> {
        let mut made = Made::new(&self.device);
        let pipeline = made.pipeline(kernel)?;
        self.figures(pipeline)
    }

    fn figures(&self, pipeline: vk::Pipeline) -> anyhow::Result<Compiled> {
        let asked = vk::PipelineInfoKHR::default().pipeline(pipeline);
        // SAFETY: the pipeline was made on this device, which has the extension.
        let parts = unsafe { self.executables.get_pipeline_executable_properties(&asked) }?;
        let [part] = parts.as_slice() else {
            bail!("the driver made {} programs of a compute pipeline", parts.len());
        };
        let part_info = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline).executable_index(0);
        // SAFETY: as above; the pipeline was made with the flag that captures statistics.
        let statistics = unsafe { self.executables.get_pipeline_executable_statistics(&part_info) }?;
        let statistics = statistics.iter().map(|one| {
            // SAFETY: drivers end names with a zero, and `format` says which member of the union is set.
            let (name, value) = unsafe {
                let value = match one.format {
                    vk::PipelineExecutableStatisticFormatKHR::FLOAT64 => one.value.f64.max(0.0).round() as u64,
                    vk::PipelineExecutableStatisticFormatKHR::BOOL32 => u64::from(one.value.b32),
                    _ => one.value.u64,
                };
                (CStr::from_ptr(one.name.as_ptr()), value)
            };
            (name.to_string_lossy().into_owned(), value)
        });
        let statistics = statistics.collect();
        Ok(Compiled { wave: part.subgroup_size, statistics, texts: self.texts(&part_info)? })
    }

    /// The texts of a pipeline: their lengths first, then the texts into memory of these lengths.
    fn texts(&self, part: &vk::PipelineExecutableInfoKHR<'_>) -> anyhow::Result<Vec<(String, String)>> {
        // SAFETY: the pipeline was made on this device with the flag that captures representations.
        let mut texts = unsafe { self.executables.get_pipeline_executable_internal_representations(part) }?;
        let mut memory: Vec<Vec<u8>> = texts.iter().map(|text| vec![0; text.data_size]).collect();
        for (text, memory) in texts.iter_mut().zip(&mut memory) {
            text.p_data = memory.as_mut_ptr().cast();
        }
        let mut count = u32::try_from(texts.len())?;
        let ask = self.executables.fp().get_pipeline_executable_internal_representations_khr;
        // SAFETY: `count` is the number of `texts`, and each has memory of the length that the driver asked for.
        unsafe { ask(self.executables.device(), part, &raw mut count, texts.as_mut_ptr()) }.result()?;
        let named = texts.iter().zip(memory).filter(|(text, _)| text.is_text == vk::TRUE);
        let named = named.map(|(text, memory)| {
            // SAFETY: drivers end names with a zero.
            let name = unsafe { CStr::from_ptr(text.name.as_ptr()) };
            let end = memory.iter().position(|byte| *byte == 0).unwrap_or(memory.len());
            (name.to_string_lossy().into_owned(), String::from_utf8_lossy(&memory[..end]).into_owned())
        });
        Ok(named.collect())
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // SAFETY: every pipeline was destroyed at the end of the call that made it.
        unsafe {
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

/// A device of the instance's first adapter, with the names of adapter and driver.
fn open_on(instance: &Instance) -> anyhow::Result<(Device, String, String)> {
    // SAFETY: the instance lives.
    let adapters = unsafe { instance.enumerate_physical_devices() }.context("no Vulkan adapters")?;
    let adapter = *adapters.first().context("the driver lists no adapter; set RADV_FORCE_FAMILY")?;
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut about = vk::PhysicalDeviceProperties2::default().push_next(&mut driver);
    // SAFETY: the adapter belongs to the instance, and the chain lives until the call returns.
    unsafe { instance.get_physical_device_properties2(adapter, &mut about) };
    let about = about.properties;
    let text = |field: &[std::ffi::c_char]| {
        let bytes: Vec<u8> = field.iter().map(|c| *c as u8).take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (gpu, driver) =
        (text(&about.device_name), format!("{} {}", text(&driver.driver_name), text(&driver.driver_info)));

    let mut robust = vk::PhysicalDeviceRobustness2FeaturesEXT::default();
    let mut eleven = vk::PhysicalDeviceVulkan11Features::default();
    let mut twelve = vk::PhysicalDeviceVulkan12Features::default();
    let mut thirteen = vk::PhysicalDeviceVulkan13Features::default();
    let mut has = vk::PhysicalDeviceFeatures2::default()
        .push_next(&mut robust)
        .push_next(&mut eleven)
        .push_next(&mut twelve)
        .push_next(&mut thirteen);
    // SAFETY: as above.
    unsafe { instance.get_physical_device_features2(adapter, &mut has) };
    if robust.robust_buffer_access2 == vk::FALSE {
        bail!("{gpu} ({driver}) has no robustBufferAccess2; its code would differ from that of wgpu's devices");
    }

    let core = vk::PhysicalDeviceFeatures::default().robust_buffer_access(true).shader_int16(true);
    let mut robust = vk::PhysicalDeviceRobustness2FeaturesEXT::default()
        .robust_buffer_access2(true)
        .robust_image_access2(robust.robust_image_access2 == vk::TRUE);
    let mut eleven = vk::PhysicalDeviceVulkan11Features::default()
        .storage_buffer16_bit_access(eleven.storage_buffer16_bit_access == vk::TRUE)
        .uniform_and_storage_buffer16_bit_access(eleven.uniform_and_storage_buffer16_bit_access == vk::TRUE);
    let mut twelve = vk::PhysicalDeviceVulkan12Features::default()
        .shader_float16(twelve.shader_float16 == vk::TRUE)
        .shader_int8(twelve.shader_int8 == vk::TRUE)
        .vulkan_memory_model(twelve.vulkan_memory_model == vk::TRUE);
    let mut thirteen = vk::PhysicalDeviceVulkan13Features::default()
        .robust_image_access(thirteen.robust_image_access == vk::TRUE)
        .shader_zero_initialize_workgroup_memory(true)
        .shader_integer_dot_product(true)
        .subgroup_size_control(true);
    let mut executables =
        vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default().pipeline_executable_info(true);
    let names = [khr::pipeline_executable_properties::NAME.as_ptr(), ash::ext::robustness2::NAME.as_ptr()];
    let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(0).queue_priorities(&[1.0])];
    let wanted = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&names)
        .enabled_features(&core)
        .push_next(&mut robust)
        .push_next(&mut eleven)
        .push_next(&mut twelve)
        .push_next(&mut thirteen)
        .push_next(&mut executables);
    // SAFETY: the adapter belongs to the instance, and everything that `wanted` points to lives until the call returns.
    let device = unsafe { instance.create_device(adapter, &wanted, None) };
    Ok((device.with_context(|| format!("{gpu} ({driver}) cannot be opened"))?, gpu, driver))
}

/// The objects of one pipeline, which are destroyed with it.
struct Made<'a> {
    device: &'a Device,
    module: vk::ShaderModule,
    set: vk::DescriptorSetLayout,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
}

impl<'a> Made<'a> {
    fn new(device: &'a Device) -> Made<'a> {
        Made {
            device,
            module: vk::ShaderModule::null(),
            set: vk::DescriptorSetLayout::null(),
            layout: vk::PipelineLayout::null(),
            pipeline: vk::Pipeline::null(),
        }
    }

    /// Makes the pipeline with the layout that crates/gpu gives to it: storage buffers, and a uniform buffer with a
    /// dynamic offset.
    fn pipeline(&mut self, kernel: &Spirv) -> anyhow::Result<vk::Pipeline> {
        let entry = CString::new(kernel.entry.as_str())?;
        let bindings: Vec<_> = kernel
            .bindings
            .iter()
            .map(|(number, is_uniform)| {
                let kind = if *is_uniform {
                    vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC
                } else {
                    vk::DescriptorType::STORAGE_BUFFER
                };
                vk::DescriptorSetLayoutBinding::default()
                    .binding(*number)
                    .descriptor_type(kind)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let flags = vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR
            | vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR;
        // SAFETY: every object is made on `device`, what the descriptions point to lives until the calls return, and
        // naga validated the module from which the words were written.
        unsafe {
            let module = vk::ShaderModuleCreateInfo::default().code(&kernel.words);
            self.module = self.device.create_shader_module(&module, None)?;
            let set = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            self.set = self.device.create_descriptor_set_layout(&set, None)?;
            let sets = [self.set];
            let layout = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
            self.layout = self.device.create_pipeline_layout(&layout, None)?;
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(self.module)
                .name(&entry);
            let wanted = vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout).flags(flags);
            let made = self.device.create_compute_pipelines(vk::PipelineCache::null(), &[wanted], None);
            self.pipeline = made.map_err(|(_, problem)| problem).context("the driver makes no pipeline")?[0];
        }
        Ok(self.pipeline)
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing uses these objects any more, and null handles are ignored.
        unsafe {
            self.device.destroy_pipeline(self.pipeline, None);
            self.device.destroy_pipeline_layout(self.layout, None);
            self.device.destroy_descriptor_set_layout(self.set, None);
            self.device.destroy_shader_module(self.module, None);
        }
    }
}
