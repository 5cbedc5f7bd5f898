//! Where a test body runs: simulated machines, or a card.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::Duration,
};

use nv_driver::{Backend, Device, Options, System};
use nv_simulator::{
    machine::{Builder, Machine},
    profile::Profile,
};

/// The version that the simulated kernel modules report: the one that was measured.
pub const DRIVER: &str = "580.159.04";
/// The longest that any wait takes. A body that reaches it has failed.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// A kernel module with its GPUs, and which fixture cubins the bodies load.
#[derive(Debug)]
pub struct Place {
    name: &'static str,
    backend: Arc<dyn Backend>,
    system: Arc<System>,
    machine: Option<Arc<Machine>>,
    code: Option<&'static str>,
    faults: Cell<usize>,
}

impl Place {
    /// A fresh machine with these GPUs.
    ///
    /// # Panics
    /// If the machine cannot be built or its nodes cannot be opened: the test has failed.
    pub fn simulated(name: &'static str, profiles: &[Profile]) -> Self {
        Self::simulated_under(name, profiles, DRIVER)
    }

    /// The same under a kernel module of another version.
    ///
    /// # Panics
    /// As [`Self::simulated`].
    pub fn simulated_under(name: &'static str, profiles: &[Profile], driver: &str) -> Self {
        Self::simulated_by(name, profiles, Machine::builder().driver(driver))
    }

    /// The same, of a machine with settings of its own.
    ///
    /// # Panics
    /// As [`Self::simulated`].
    pub fn simulated_by(name: &'static str, profiles: &[Profile], settings: Builder) -> Self {
        let builder = profiles.iter().fold(settings, |builder, profile| builder.gpu(profile.clone()));
        let machine = builder.build().unwrap_or_else(|error| panic!("{name}: {error}"));
        let backend: Arc<dyn Backend> = machine.clone();
        let system = System::open(backend.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name, backend, system, machine: Some(machine), code: None, faults: Cell::new(0) }
    }

    /// The device nodes of this computer; `None`, with the reason printed, where there is no card.
    #[cfg(feature = "hw")]
    pub fn card() -> Option<Self> {
        match Self::open_card() {
            Ok(place) => Some(place),
            Err(reason) => {
                skip(&reason);
                None
            }
        }
    }

    #[cfg(feature = "hw")]
    fn open_card() -> Result<Self, String> {
        let backend: Arc<dyn Backend> = Arc::new(nv_driver::os::NvidiaNodes::new());
        let system = System::open(backend.clone()).map_err(|error| error.to_string())?;
        if system.device_count() == 0 {
            return Err("the kernel module lists no GPU".to_owned());
        }
        Ok(Self { name: "card", backend, system, machine: None, code: None, faults: Cell::new(0) })
    }

    /// The same place, where bodies load the cubins of one folder of [`fixtures::ARCHES`] whatever the GPU is.
    #[must_use]
    pub fn with_code(mut self, arch: &'static str) -> Self {
        self.code = Some(arch);
        self
    }

    /// The place's name, for messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What is below the driver.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// The client.
    pub fn system(&self) -> &Arc<System> {
        &self.system
    }

    /// The simulated machine; `None` on a card.
    pub fn machine(&self) -> Option<&Arc<Machine>> {
        self.machine.as_ref()
    }

    /// GPUs.
    pub fn gpus(&self) -> usize {
        self.system.device_count()
    }

    /// GPU number `index` with the usual options and this suite's deadline.
    pub fn device(&self, index: usize) -> Device {
        self.device_with(index, |_| {})
    }

    /// GPU number `index` with options of one's own.
    ///
    /// # Panics
    /// If it does not open: the test has failed.
    pub fn device_with(&self, index: usize, change: impl FnOnce(&mut Options)) -> Device {
        let mut options = Options::default();
        options.deadline = DEADLINE;
        change(&mut options);
        Device::open_on(&self.system, index, options)
            .unwrap_or_else(|error| panic!("{}, GPU {index}: {error}", self.name))
    }

    /// The folder of [`fixtures::ARCHES`] whose cubins run on a device.
    ///
    /// # Panics
    /// Where there are no cubins for such a GPU.
    pub fn code_for(&self, device: &Device) -> &'static str {
        self.code
            .or_else(|| fixtures::arch_for(device.sm()))
            .unwrap_or_else(|| panic!("there are no cubins for sm_{}", device.sm()))
    }

    /// Says that the body makes the machine report so many faults; it is checked at the end.
    pub fn expect_faults(&self, count: usize) {
        self.faults.set(self.faults.get() + count);
    }

    /// Runs a body here, and checks what the simulated machine has to say about it.
    ///
    /// # Panics
    /// If the body does, if the machine reports other faults than the body has announced, or anything unsupported.
    pub fn run(&self, body: impl FnOnce(&Self)) {
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| body(self)));
        let faults = self.machine.as_ref().map(|machine| machine.faults()).unwrap_or_default();
        let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        if let Err(panic) = outcome {
            eprintln!("{}: the machine's faults: {texts:#?}", self.name);
            panic::resume_unwind(panic);
        }
        if let Some(machine) = &self.machine {
            assert_eq!(texts.len(), self.faults.get(), "{}: {texts:#?}", self.name);
            let unsupported = machine.unsupported();
            assert!(unsupported.is_empty(), "{}: {unsupported:#?}", self.name);
        }
    }
}

/// Says, past the test harness's capture, why something does not run. Each reason once.
pub fn skip(reason: &str) {
    use std::{
        io::Write,
        sync::{Mutex, PoisonError},
    };
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.iter().any(|old| old == reason) {
        // Where nobody listens, nothing is lost.
        let _ = writeln!(std::io::stderr(), "skipped on the card: {reason}");
        said.push(reason.to_owned());
    }
}

/// Turns each body, a `fn(&Place)`, into tests: one for every kind of place.
///
/// Bodies after `two:` need two GPUs and bodies after `one:` one; `kernels:` also runs with the cubins of other
/// dialects and architectures than the GPU's own.
#[macro_export]
macro_rules! everywhere {
    (one: $($body:ident)*) => {
        /// The bodies that need one GPU, by name.
        #[allow(dead_code)]
        pub const BODIES: &[(&str, fn(&$crate::Place))] = &[$((stringify!($body), $body)),*];
        $(
        mod $body {
            $crate::everywhere!(@place on_ada, $body, [ad102]);
            $crate::everywhere!(@place on_ampere, $body, [ga102]);
            $crate::everywhere!(@place on_hopper, $body, [h200]);
            $crate::everywhere!(@card on_card, $body, 1);
        }
    )*};
    (two: $($body:ident)*) => {$(
        mod $body {
            $crate::everywhere!(@place on_two_ada, $body, [ad102 ad102]);
            $crate::everywhere!(@place on_two_hopper, $body, [h200 h200]);
            $crate::everywhere!(@card on_two_cards, $body, 2);
        }
    )*};
    (kernels: $($body:ident)*) => {
        /// The bodies that run kernels, by name.
        #[allow(dead_code)]
        pub const KERNEL_BODIES: &[(&str, fn(&$crate::Place))] = &[$((stringify!($body), $body)),*];
        $(
        mod $body {
            $crate::everywhere!(@place on_ada, $body, [ad102]);
            $crate::everywhere!(@place on_ada_by_sm_80, $body, [ad102], "sm_80");
            $crate::everywhere!(@place on_ada_by_abi7, $body, [ad102], "sm_89.abi7");
            $crate::everywhere!(@place on_ampere, $body, [ga102]);
            $crate::everywhere!(@place on_hopper, $body, [h200]);
            $crate::everywhere!(@place on_two_ada, $body, [ad102 ad102]);
            $crate::everywhere!(@place on_two_hopper, $body, [h200 h200]);
            $crate::everywhere!(@card on_card, $body, 1);
        }
    )*};
    (@place $name:ident, $body:ident, [$($profile:ident)*] $(, $code:literal)?) => {
        #[test]
        fn $name() {
            let profiles = [$(nv_simulator::profile::Profile::$profile()),*];
            $crate::Place::simulated(stringify!($name), &profiles)$(.with_code($code))?.run(super::$body);
        }
    };
    (@card $name:ident, $body:ident, $gpus:literal) => {
        #[cfg(feature = "hw")]
        #[test]
        fn $name() {
            if let Some(place) = $crate::Place::card() {
                if place.gpus() < $gpus {
                    $crate::skip(concat!("tests of ", $gpus, " GPUs: there are fewer"));
                } else {
                    place.run(super::$body);
                }
            }
        }
    };
}
