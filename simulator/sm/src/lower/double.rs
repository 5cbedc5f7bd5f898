//! FP64.

use sass::{FieldId as F, Op};

use super::super::execute::double as x;
use super::super::micro::Micro;
use super::float::{marks, rounding};
use super::integer::boolean;
use super::reader::{Read, Reader};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::Dadd => arithmetic::<x::Dadd>(r, 2),
        Op::Dmul => arithmetic::<x::Dmul>(r, 2),
        Op::Dfma => arithmetic::<x::Dfma>(r, 3),
        Op::Dsetp => dsetp(r),
        _ => return None,
    })
}

fn arithmetic<T: super::super::micro::Execute>(r: &mut Reader<'_>, sources: usize) -> Read<Micro> {
    let rounding = rounding(r)?;
    let mut micro = r.micro::<T>();
    micro.payload = x::rounding_code(rounding);
    micro.d = r.to(0, 2)?;
    for slot in 0..sources {
        let source = r.float(slot + 1, 2)?;
        marks(&mut micro, slot, source);
    }
    Ok(micro)
}

fn dsetp(r: &mut Reader<'_>) -> Read<Micro> {
    let code = r.field(F::Compare);
    let compare = r.spelling(F::Compare);
    let boolean = boolean(r)?;
    let mut micro = r.micro::<x::Dsetp>();
    if matches!(compare, ".MIN" | ".MAX") {
        if boolean != 0 {
            return Err(super::Refusal::unsupported("this boolean operation with .MIN and .MAX"));
        }
        micro.run = if compare == ".MIN" {
            r.plain_handler::<x::DsetpExtremum<true>>()
        } else {
            r.plain_handler::<x::DsetpExtremum<false>>()
        };
    }
    micro.to = [r.predicate_to(0)?, r.predicate_to(1)?];
    let (a, b) = (r.float(2, 2)?, r.float(3, 2)?);
    marks(&mut micro, 0, a);
    marks(&mut micro, 1, b);
    micro.payload = u64::from(micro.extra) | u64::from(code & 15) << 8;
    micro.extra = boolean;
    micro.from[0] = r.predicate(4)?;
    Ok(micro)
}
