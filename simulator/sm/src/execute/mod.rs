//! What micro-operations do: handlers, by family. Each is compiled for every set of processor features from one body.

pub(super) mod bindless;
pub(super) mod bulk;
pub(super) mod control;
pub(super) mod convert;
pub(super) mod double;
pub(super) mod float;
pub(super) mod half;
pub(super) mod integer;
pub(super) mod mbarrier;
pub(super) mod memory;
pub(super) mod moves;
pub(super) mod tensor;
pub(super) mod texture;

/// An expression that may be there.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use optional;

/// Declares handlers: a type each, with the body that runs it. `|core, op, mask|` is for the lanes `mask` of one warp;
/// `|core, op|` is for the whole team. In brackets stands what it becomes in compiled code, if it can (`if`: in which
/// case), what it accesses, how its result depends on its sources, and whether
/// it is only for what is executed as a whole.
macro_rules! handlers {
    ($(
        $(#[$meta:meta])*
        $name:ident $(<$(const $parameter:ident: $kind:ty),+>)? $([$emit:path $(, access $access:expr)? $(, linear $linear:expr)? $(, apart $apart:expr)? $(, if $when:expr)?])? =
            |$core:ident, $op:ident $(, $mask:ident)?| $body:expr;
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug)]
        pub(crate) struct $name $(<$(const $parameter: $kind),+>)?;

        $crate::execute::run! {
            [$($(const $parameter: $kind),+)?] [$name $(<$($parameter),+>)?] [$($emit $(, access $access)? $(, linear $linear)? $(, apart $apart)? $(, if $when)?)?]
            |$core, $op $(, $mask)?| $body
        }
    )*};
}
use handlers;

/// Implements what runs a handler.
macro_rules! run {
    ([$($generics:tt)*] [$name:ty] [$($emit:path $(, access $access:expr)? $(, linear $linear:expr)? $(, apart $apart:expr)? $(, if $when:expr)?)?] |$core:ident, $op:ident| $body:expr) => {
        impl<$($generics)*> $crate::micro::Execute for $name {
            $(
                #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
                const EMIT: Option<$crate::native::Emit> = if true $(&& $when)? {
                    Some($crate::native::Emit { run: $emit, access: $crate::execute::optional!($($access)?), linear: $crate::execute::optional!($($linear)?), apart: false $(|| $apart)? })
                } else {
                    None
                };
            )?

            #[inline(always)]
            fn run<L: $crate::micro::Level>(
                $core: &mut $crate::core::Core<'_>,
                $op: &$crate::micro::Micro,
            ) -> $crate::micro::Flow {
                $body
            }
        }
    };
    ([$($generics:tt)*] [$name:ty] [$($emit:path $(, access $access:expr)? $(, linear $linear:expr)? $(, apart $apart:expr)? $(, if $when:expr)?)?] |$core:ident, $op:ident, $mask:ident| $body:expr) => {
        impl<$($generics)*> $crate::micro::ExecuteOne for $name {
            #[inline(always)]
            fn one<L: $crate::micro::Level>(
                $core: &mut $crate::core::Core<'_>,
                $op: &$crate::micro::Micro,
                $mask: u32,
            ) -> $crate::micro::Flow {
                $body
            }
        }
        $crate::execute::run! {
            [$($generics)*] [$name] [$($emit $(, access $access)? $(, linear $linear)? $(, apart $apart)? $(, if $when)?)?] |core, op| core.each_warp::<Self, L>(op)
        }
    };
}
use run;

/// Lets compiled code call what a lane computes.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
macro_rules! called_lanes {
    ($($name:ty = |$op:ident, [$a:ident, $b:ident, $c:ident]| $body:expr, reads $sources:expr;)*) => {$(
        impl $crate::native::called::Called for $name {
            const SOURCES: [bool; 3] = $sources;

            #[inline(always)]
            fn lane($op: &Micro, [$a, $b, $c]: [u32; 3]) -> u32 {
                $body
            }
        }
    )*};
}
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use called_lanes;

use super::fault::FaultKind;
use super::micro::{Flow, Micro};

handlers! {
    /// Does nothing.
    Nothing = |_core, _op, _mask| Flow::Next;
    /// Leaves the loop for [`crate::control`].
    Control = |core, op| {
        // Where its guard keeps all lanes from it there is nothing to leave for.
        let skipped = core.skipped;
        if op.kind & Micro::GUARDED != 0 && core.masks(op).iter().take(core.team.count).all(|mask| *mask == 0) {
            return Flow::Next;
        }
        core.skipped = skipped;
        Flow::Control
    };
    /// Raises a fault that lowering found.
    Faulting = |core, op, _mask| {
        let kind = core.faults.get(op.payload as usize).cloned().unwrap_or(FaultKind::UnknownInstruction);
        core.fail(kind)
    };
    /// A constant that the launch did not bind.
    MissingConstant = |core, op, _mask| {
        core.fail(FaultKind::Constant { bank: (op.payload >> 32) as u8, offset: op.payload as u32 })
    };
}
