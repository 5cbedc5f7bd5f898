//! Actions in words.

use nv_abi::{compute::HOPPER_COMPUTE_A as compute, copy::HOPPER_DMA_COPY_A as copy, dump::class_name};

use crate::{action::Action, symbols::Symbols};

/// The fields of a data word that are not zero, as `NAME=VALUE`.
fn fields(layout: &nv_abi::Layout, data: u32) -> String {
    let mut parts = Vec::new();
    for field in layout.fields {
        let number = field.decode(data.into());
        if number != 0 {
            let value = field.enumerant(number).map_or_else(|| number.to_string(), str::to_owned);
            parts.push(format!("{}={value}", field.name));
        }
    }
    parts.join(" ")
}

/// The three dimensions of a grid or block.
pub(crate) fn by([x, y, z]: [u32; 3]) -> String {
    format!("{x} x {y} x {z}")
}

/// What an action does, in one line.
pub fn describe(action: &Action, symbols: &Symbols) -> String {
    let at = |address: &u64| symbols.text(*address);
    let width = |wide: &bool| if *wide { 64 } else { 32 };
    match action {
        Action::Bind { subchannel, class } => {
            format!("put {} on subchannel {subchannel}", class_name(*class))
        }
        Action::Acquire { address, payload, wide, operation } => {
            format!("wait at {} for {payload:#x} ({operation}, {} bits)", at(address), width(wide))
        }
        Action::Release { address, payload, wide, operation, wait_for_idle, timestamp } => {
            let mut text = format!("{operation} {payload:#x} to {} ({} bits", at(address), width(wide));
            if *timestamp {
                text.push_str(", with the time");
            }
            if *wait_for_idle {
                text.push_str(", once idle");
            }
            text + ")"
        }
        Action::Report { address, payload, execute } => {
            let fields = fields(&compute::SET_REPORT_SEMAPHORE_D::LAYOUT, *execute);
            format!("report {payload:#x} to {} ({fields})", at(address))
        }
        Action::Upload { address, bytes } => format!("upload {} bytes to {}", bytes.len(), at(address)),
        Action::Launch { qmd, action, inline } => {
            let from = if inline.is_some() { ", uploaded before" } else { "" };
            format!("launch: {action} the QMD at {}{from}", at(qmd))
        }
        Action::Copy { source, destination, line, lines, pitches, release, launch } => {
            let mut text = format!("copy {line} bytes from {} to {}", at(source), at(destination));
            if *lines != 1 {
                text.push_str(&format!(", {lines} lines, pitches {} and {}", pitches[0], pitches[1]));
            }
            if let Some((address, payload)) = release {
                text.push_str(&format!(", then {payload:#x} to {}", at(address)));
            }
            format!("{text} ({})", fields(&copy::LAUNCH_DMA::LAYOUT, *launch))
        }
        Action::CopyRelease { address, payload, launch } => {
            let fields = fields(&copy::LAUNCH_DMA::LAYOUT, *launch);
            format!("copy engine: {payload:#x} to {} once copied ({fields})", at(address))
        }
        Action::Invalidate { data, wait_for_idle } => {
            let when = if *wait_for_idle { ", once idle" } else { "" };
            let fields = fields(&compute::INVALIDATE_SHADER_CACHES_NO_WFI::LAYOUT, *data);
            format!("invalidate shader caches ({fields}){when}")
        }
        Action::WaitForIdle => "wait for idle".to_owned(),
        Action::LocalMemory { address } => format!("local memory at {}", at(address)),
        Action::Method { owner, name, text, .. } => format!("{owner} {name} {text}"),
        Action::Broken(reason) => format!("broken: {reason}"),
    }
}
