//! Launch descriptors, decoded and as text.

use std::{collections::BTreeSet, fmt::Write};

use super::{FieldValue, uncovered};
use crate::{
    Bits, FieldError,
    qmd::{Launch, Version, read},
};

/// Every field of a descriptor that is not zero, in the order of its rows, then bits of no field. The position is the
/// lowest bit.
pub fn qmd_fields(version: Version, bytes: &[u8]) -> Result<Vec<FieldValue>, FieldError> {
    Ok(rows(version, bytes)?.into_iter().map(|(field, _)| field).collect())
}

/// The same with each field's width.
fn rows(version: Version, bytes: &[u8]) -> Result<Vec<(FieldValue, u32)>, FieldError> {
    let layout = version.rows().layout;
    let bits = Bits::new(bytes);
    let mut found = Vec::new();
    // Some rows of V05_00 are second names of others.
    let mut shown = BTreeSet::new();
    for field in layout.fields {
        for index in 0..field.count {
            let value = FieldValue::of(field, index, &bits, false)?;
            if value.number != 0 && shown.insert((value.position, field.width())) {
                found.push((value, field.width()));
            }
        }
    }
    for (word, rest) in uncovered(bytes.get(..layout.bytes()).unwrap_or(bytes), layout.fields) {
        let value = FieldValue {
            name: String::new(),
            position: word as u32 * 32,
            number: rest.into(),
            text: format!("bits {rest:#010x} of no field"),
            kind: None,
            known: false,
        };
        found.push((value, 32));
    }
    Ok(found)
}

/// A descriptor: what it asks for, then every field that is not zero, by bits.
pub fn qmd(version: Version, bytes: &[u8]) -> Result<String, FieldError> {
    let layout = version.rows().layout;
    let mut out = format!("QMD {}, {} bytes\n", layout.name, layout.bytes());
    match read(version, bytes) {
        Ok(launch) => summary(&mut out, &launch),
        Err(error) => {
            let _ = writeln!(out, "  not executable: {error}");
        }
    }
    for (FieldValue { name, position, text, .. }, width) in rows(version, bytes)? {
        if name.is_empty() {
            let _ = writeln!(out, "  {:>4}:{position:<4}  {text}", position + width - 1);
        } else {
            let _ = writeln!(out, "  {:>4}:{position:<4}  {name:<40}  {text}", position + width - 1);
        }
    }
    Ok(out)
}

fn summary(out: &mut String, launch: &Launch) {
    let [gx, gy, gz] = launch.grid;
    let [bx, by, bz] = launch.block;
    let clusters = match launch.cluster {
        Some([x, y, z]) => format!(" clusters of {x} x {y} x {z}"),
        None => String::new(),
    };
    let _ = writeln!(
        out,
        "  program {:#x}, grid {gx} x {gy} x {gz}{clusters}, block {bx} x {by} x {bz}",
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
