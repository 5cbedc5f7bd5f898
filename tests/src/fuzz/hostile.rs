//! Code that does what it likes, on a simulated GPU that is opened again whenever its channel has died.

use std::{sync::Arc, time::Duration};

use nv_driver::{Argument, Buffer, Device, Error, Module, Options, System, program::Cubin};
use nv_simulator::{machine::Machine, profile::Profile};

use crate::DRIVER;

/// Most that a launch takes. Hostile code loops for ever; whether it does is not asked here.
const PATIENCE: Duration = Duration::from_millis(40);
/// Elements of the buffer that every pointer parameter gets.
const WORDS: usize = 1024;

/// What became of a module.
#[derive(Debug)]
pub enum Outcome {
    /// The loader refused it.
    Refused(Box<Error>),
    /// The launch was refused, or ended in an error.
    Failed(Box<Error>),
    /// A kernel ran to its end.
    Ran,
}

/// A simulated GPU for hostile modules.
#[derive(Debug)]
pub struct Hostile {
    machine: Arc<Machine>,
    system: Arc<System>,
    device: Option<Device>,
    arch: &'static str,
}

impl Hostile {
    /// On one of the profiles, by any number.
    ///
    /// # Panics
    /// If a fresh machine does not open.
    pub fn on(profile: usize) -> Self {
        let profiles = [Profile::ad102(), Profile::h200(), Profile::ga102()];
        let profile = profiles[profile % profiles.len()].clone();
        let sm = profile.sm();
        let arch = fixtures::arch_for(sm).unwrap_or_else(|| panic!("no cubins for sm_{sm}"));
        let machine = Machine::builder().driver(DRIVER).gpu(profile).build();
        let machine = machine.unwrap_or_else(|error| panic!("{error}"));
        let system = System::open(machine.clone()).unwrap_or_else(|error| panic!("{error}"));
        Self { machine, system, device: None, arch }
    }

    /// The architecture of the GPU's cubins.
    pub fn arch(&self) -> &'static str {
        self.arch
    }

    /// The machine, to ask for its faults.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    fn device(&mut self) -> Device {
        let system = &self.system;
        let open = || {
            let mut options = Options::default();
            options.deadline = PATIENCE;
            // Opening waits for the GPU, which a busy computer may be late with.
            for _ in 0..100 {
                match Device::open_on(system, 0, options) {
                    Ok(device) => return device,
                    Err(Error::Timeout { .. }) => {}
                    Err(error) => panic!("a GPU does not open again: {error}"),
                }
            }
            panic!("a GPU does not open again in time");
        };
        self.device.get_or_insert_with(open).clone()
    }

    /// Loads a cubin and launches its first kernel with a buffer for every pointer and small numbers for the rest.
    pub fn cubin(&mut self, bytes: &[u8]) -> Outcome {
        let device = self.device();
        let outcome = launch(&device, bytes);
        if let Outcome::Failed(_) = outcome {
            // Its channel is dead or busy for ever.
            self.device = None;
        }
        outcome
    }

    /// Executes words in the place of the first instructions of a fixture kernel.
    pub fn code(&mut self, code: &[u8]) -> Outcome {
        let mut bytes = fixtures::cubin(self.arch, "probe").unwrap_or_else(|error| panic!("{error}"));
        let cubin = Cubin::parse(&bytes).unwrap_or_else(|error| panic!("{error}"));
        let image = cubin.link(0).unwrap_or_else(|error| panic!("{error}"));
        let range = cubin.kernels()[0].code.clone();
        let original = &image[range.start as usize..range.end as usize];
        // Code has no relocations in this fixture, so it lies in the file as in the image.
        let found = bytes.windows(original.len()).position(|window| window == original);
        let start = found.unwrap_or_else(|| panic!("the fixture's code is not in its file"));
        let length = code.len().min(original.len());
        bytes[start..start + length].copy_from_slice(&code[..length]);
        self.cubin(&bytes)
    }
}

fn launch(device: &Device, bytes: &[u8]) -> Outcome {
    let refused = |error: Error| match error {
        // The module's upload found a dead or late channel; that is not the module's fault.
        Error::ChannelFault(_) | Error::Timeout { .. } => Outcome::Failed(Box::new(error)),
        error => Outcome::Refused(Box::new(error)),
    };
    let module = match Module::load(device, bytes) {
        Ok(module) => module,
        Err(error) => return refused(error),
    };
    let Some(name) = module.cubin().kernels().first().map(|kernel| kernel.name.clone()) else {
        return Outcome::Ran;
    };
    let run = || -> Result<(), Error> {
        let kernel = module.kernel(&name)?;
        let buffer: Buffer<u32> = device.video(WORDS)?;
        let argument = |size: usize| {
            let mut bytes =
                if size == 8 { buffer.address().to_le_bytes().to_vec() } else { vec![32, 0, 0, 0] };
            bytes.resize(size, 0);
            Argument::bytes(bytes)
        };
        let arguments: Vec<Argument> =
            kernel.info().parameters.iter().map(|parameter| argument(parameter.size.into())).collect();
        kernel.launch([2, 1, 1], [64, 1, 1], &arguments)?;
        device.synchronize()
    };
    match run() {
        Ok(()) => Outcome::Ran,
        Err(error) => Outcome::Failed(Box::new(error)),
    }
}
