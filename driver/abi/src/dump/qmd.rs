//! Launch descriptors as text.

use std::{collections::BTreeSet, fmt::Write};

use super::{uncovered, value};
use crate::{
    Bits, FieldError,
    qmd::{Launch, Version, read},
};

/// A descriptor: what it asks for, then every field that is not zero, by bits.
pub fn qmd(version: Version, bytes: &[u8]) -> Result<String, FieldError> {
    let layout = version.rows().layout;
    let bits = Bits::new(bytes);
    let mut out = format!("QMD {}, {} bytes\n", layout.name, layout.bytes());
    match read(version, bytes) {
        Ok(launch) => summary(&mut out, &launch),
        Err(error) => {
            let _ = writeln!(out, "  not executable: {error}");
        }
    }
    // Some rows of V05_00 are second names of others.
    let mut shown = BTreeSet::new();
    for field in layout.fields {
        for index in 0..field.count {
            let number = bits.get_at(field, index)?;
            if number == 0 {
                continue;
            }
            let lo = field.lo + index * field.stride;
            if !shown.insert((lo, field.width())) {
                continue;
            }
            let name =
                if field.count > 1 { format!("{}[{index}]", field.name) } else { field.name.to_owned() };
            let _ = writeln!(
                out,
                "  {:>4}:{lo:<4}  {name:<40}  {}",
                lo + field.width() - 1,
                value(field, number, false)
            );
        }
    }
    for (word, rest) in uncovered(bytes.get(..layout.bytes()).unwrap_or(bytes), layout.fields) {
        let _ = writeln!(out, "  {:>4}:{:<4}  bits {rest:#010x} of no field", word * 32 + 31, word * 32);
    }
    Ok(out)
}

fn summary(out: &mut String, launch: &Launch) {
    let [gx, gy, gz] = launch.grid;
    let [bx, by, bz] = launch.block;
    let _ = writeln!(
        out,
        "  program {:#x}, grid {gx} x {gy} x {gz}, block {bx} x {by} x {bz}",
        launch.program_address
    );
    let _ = writeln!(
        out,
        "  registers {}, barriers {}, shared memory {} bytes, local memory {} + {} bytes a thread",
        launch.registers,
        launch.barriers,
        launch.shared_bytes,
        launch.local_low_bytes,
        launch.local_high_bytes
    );
    for (index, buffer) in launch.constant_buffers.iter().enumerate() {
        if let Some(buffer) = buffer {
            let _ = writeln!(out, "  constant bank {index} at {:#x}, {} bytes", buffer.address, buffer.bytes);
        }
    }
    for release in &launch.releases {
        let _ = write!(
            out,
            "  release {:#x} to {:#x}, {:?}",
            release.payload, release.address, release.structure_size
        );
        if let Some((op, signed)) = release.reduction {
            let _ = write!(out, ", reduction {op} {}", if signed { "signed" } else { "unsigned" });
        }
        let _ = writeln!(out, "{}", if release.membar { ", after a system membar" } else { "" });
    }
    for dependent in &launch.dependents {
        let _ = writeln!(
            out,
            "  then action {} on the QMD at {:#x}{}",
            dependent.action,
            dependent.address,
            if dependent.prefetch { ", prefetched" } else { "" }
        );
    }
    out.push('\n');
}
