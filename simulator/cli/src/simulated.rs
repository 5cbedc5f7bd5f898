//! The machine that commands work on: which GPU, how many, which driver version.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use nv_capture::Recorder;
use nv_driver::{Device, Options, System};
use nv_simulator::{
    machine::{BuildError, Machine},
    profile::Profile,
};

/// The driver version where none is named: the one whose module was measured.
pub const DRIVER: &str = "580.159.04";

/// A GPU that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Gpu {
    /// GeForce RTX 4090 (Ada, sm_89).
    Ad102,
    /// GeForce RTX 3090 (Ampere, sm_86).
    Ga102,
    /// H200 (Hopper, sm_90).
    H200,
}

impl Gpu {
    /// Its profile.
    pub fn profile(self) -> Profile {
        match self {
            Self::Ad102 => Profile::ad102(),
            Self::Ga102 => Profile::ga102(),
            Self::H200 => Profile::h200(),
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// One that runs code for an SM number.
    pub fn for_sm(sm: u32) -> Option<Self> {
        match sm {
            89 => Some(Self::Ad102),
            80..=86 => Some(Self::Ga102),
            90 => Some(Self::H200),
            _ => None,
        }
    }
}

/// The machine, as the command line describes it.
#[derive(Clone, Debug, Args)]
pub struct Choice {
    /// The GPU; by default one that the cubin was compiled for.
    #[arg(long, value_enum)]
    pub gpu: Option<Gpu>,
    /// How many of them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub gpus: u8,
    /// The driver version that the simulated kernel module reports.
    #[arg(long, default_value = DRIVER)]
    pub driver: String,
}

/// Why there is no machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// No simulated GPU runs the code.
    #[error("no simulated GPU runs sm_{0} code; there are ad102 (sm_89), ga102 (sm_86) and h200 (sm_90)")]
    NoGpu(u32),
    /// The machine could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The driver found no device, or could not use it.
    #[error("bringing up the simulated GPU: {0}")]
    Driver(#[from] nv_driver::Error),
    /// The process cannot read its own memory.
    #[error("cannot record: {0}")]
    Record(#[from] std::io::Error),
}

/// A simulated machine with the driver's view of it.
#[derive(Debug)]
pub struct Simulated {
    /// The machine.
    pub machine: Arc<Machine>,
    /// What went over the boundary, where that was asked for.
    pub recorder: Option<Arc<Recorder<Machine>>>,
    /// The driver's connection.
    pub system: Arc<System>,
    /// The profile of its GPUs.
    pub profile: Profile,
}

impl Choice {
    /// Builds the machine for code of an SM number and connects the driver, through a recorder where `record`.
    pub fn open(&self, sm: u32, record: bool) -> Result<Simulated, MachineError> {
        let gpu = self.gpu.or_else(|| Gpu::for_sm(sm)).ok_or(MachineError::NoGpu(sm))?;
        let profile = gpu.profile();
        let builder = (0..self.gpus)
            .fold(Machine::builder().driver(&self.driver), |builder, _| builder.gpu(profile.clone()));
        let machine = builder.build()?;
        let recorder = record.then(|| Recorder::new(Arc::clone(&machine), machine.branch())).transpose()?;
        let system = match &recorder {
            Some(recorder) => {
                let near = Arc::clone(&machine);
                recorder.ask(Box::new(move |address, to| near.read_mapped(address, to)));
                System::open(recorder.clone())?
            }
            None => System::open(machine.clone())?,
        };
        Ok(Simulated { machine, recorder, system, profile })
    }
}

impl Simulated {
    /// Opens GPU number `index`.
    pub fn device(&self, index: usize) -> Result<Device, MachineError> {
        Ok(Device::open_on(&self.system, index, Options::default())?)
    }

    /// The reports of all faults, a line each.
    pub fn faults(&self) -> Vec<String> {
        self.machine.faults().iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_has_the_name_that_the_command_line_takes() {
        for gpu in Gpu::value_variants() {
            assert_eq!(Gpu::from_str(&gpu.name(), false), Ok(*gpu));
        }
    }
}
