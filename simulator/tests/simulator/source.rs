//! Which function and source line an instruction is of.

use std::sync::Arc;

use nv_simulator::memory::{Access, AddressMap, AddressSpace, Backing};
use nv_simulator::source::{CubinError, Lines, Program, Programs};

/// Bytes of an instruction.
const INSTRUCTION: usize = 16;
const BASE: u64 = 0x10_0000_0000;

/// Where the code lies, with words changed as relocations change them.
fn loaded(code: &[u8], changed: &[usize]) -> Arc<AddressMap> {
    let memory = Arc::new(Backing::new("code", 1 << 16).expect("memory"));
    memory.write(0x1000, code).expect("inside");
    for index in changed {
        memory.write(0x1000 + (index * INSTRUCTION) as u64, &[0xff; 4]).expect("inside");
    }
    let space = AddressSpace::new(1 << 49);
    space.map(BASE, 1 << 16, memory, 0, Access::ReadWriteAtomic).expect("free");
    space.snapshot()
}

#[test]
fn code_in_memory_is_known_by_its_cubin() {
    let cubin = fixtures::bytes("lines/transpose.sm_89.cubin").expect("a fixture");
    let program = Program::of(&cubin).expect("a cubin");
    let code = program.code("transpose").expect("its kernel").to_vec();
    let mut programs = Programs::default();
    programs.add(Arc::new(Program::of(&fixtures::cubin("sm_89", "saxpy").expect("a fixture")).expect("one")));
    programs.add(Arc::new(program));
    let map = loaded(&code, &[]);
    let found = programs.find(&map, BASE + 0x1000, BASE + 0x1100).expect("known");
    assert_eq!(found.to_string(), "kernel transpose, at transpose+0x100, transpose.cu:5");
    // A function that another kernel called.
    let found = programs.find(&map, BASE, BASE + 0x1100).expect("known");
    assert_eq!((found.kernel, found.function), (None, Some(("transpose".to_owned(), 0x100))));
    assert_eq!(programs.find(&map, BASE, BASE), None, "zeroes");
    assert_eq!(programs.find(&map, BASE + (1 << 20), BASE + (1 << 20)), None, "not mapped");
    let other = loaded(&code, &[3]);
    assert_eq!(programs.find(&other, BASE + 0x1000, BASE + 0x1000), None, "another kernel");
}

#[test]
fn relocated_instructions_may_be_anything_and_no_others() {
    const KERNEL: &str = "control";
    let cubin = fixtures::bytes("kinds/sm_90/G.cubin").expect("a fixture");
    let mut programs = Programs::new();
    assert!(programs.add_cubin(&cubin).expect("a cubin") > 0);
    let program = Program::of(&cubin).expect("a cubin");
    let (code, relocated) = (program.code(KERNEL).expect("its kernel"), program.relocated(KERNEL));
    let named = |code: &[u8]| {
        let read = |offset: u64, bytes: usize| Some(code.get(offset as usize..)?.get(..bytes)?.to_vec());
        programs.identify(&read).map(|(name, bytes)| (name.to_owned(), bytes))
    };
    let offsets = (0..code.len() as u64).step_by(INSTRUCTION);
    let (mut kept, mut lost) = (0, 0);
    for offset in offsets {
        let mut changed = code.to_vec();
        changed[offset as usize..][..4].fill(0xff);
        let known = relocated.contains(&offset).then(|| (KERNEL.to_owned(), code.len() as u64));
        *(if known.is_some() { &mut kept } else { &mut lost }) += 1;
        assert_eq!(named(&changed), known, "{offset:#x}");
    }
    assert!(kept > 0 && lost > kept, "{kept} and {lost}");
    assert_eq!(named(&code[..code.len() - 1]), None, "not all of it");
    let words = code.as_chunks::<INSTRUCTION>().0.iter().map(|word| u128::from_le_bytes(*word));
    let words = (0_u64..).step_by(INSTRUCTION).zip(words);
    assert_eq!(programs.executed(words).map(|(name, _)| name), Some(KERNEL));
    assert!(programs.executed([(0, 1_u128)].into_iter()).is_none());
}

#[test]
fn what_is_no_cubin_is_refused() {
    assert!(matches!(Program::of(b"no cubin"), Err(CubinError::Elf(_))));
    let cubin = fixtures::cubin("sm_89", "saxpy").expect("a fixture");
    for end in (0..cubin.len()).step_by(97) {
        let _ = Program::of(&cubin[..end]);
    }
}

#[test]
fn rows_say_which_line_an_instruction_is_of() {
    let cubin = fixtures::bytes("lines/transpose.sm_89.cubin").expect("a fixture");
    let lines = Lines::of(&cubin);
    // What nvdisasm -g prints in front of the instructions.
    for (offset, line) in [(0x0, 2), (0x10, 4), (0x30, 5), (0x40, 4), (0x100, 5), (0x120, 7), (0x160, 8)] {
        assert_eq!(lines.find("transpose", offset), Some(("transpose.cu", line)), "{offset:#x}");
    }
    assert_eq!(lines.find("elsewhere", 0), None);
    assert_eq!(Lines::of(b"no cubin").find("transpose", 0), None);
    for end in (0..cubin.len()).step_by(7) {
        let _ = Lines::of(&cubin[..end]);
    }
}
