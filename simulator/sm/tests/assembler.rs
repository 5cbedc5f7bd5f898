//! The instructions of compiled code against what GNU objdump reads in their bytes: `fixtures/sm/assembler.txt`, which says
//! how it was made. `UPDATE_ASSEMBLER=FILE` writes the bytes anew, for objdump to read.
#![cfg(target_arch = "x86_64")]

#[allow(dead_code)]
#[path = "../src/native/assembler.rs"]
mod assembler;

use assembler::{
    Arithmetic, Assembler, Condition, General, Memory, R8, R10, R14, RAX, RDX, RSP, Vector, Ymm, at,
};

/// Instructions with one source.
const ONE_SOURCE: &[&str] = &[
    "VMOVMSKPS",
    "VCVTDQ2PS",
    "VMOVDQU",
    "VMOVDQU_STORE",
    "VPABSD",
    "VPBROADCASTD",
    "VPBROADCASTB",
    "VPBROADCASTW",
    "VPMOVSXBD",
    "VPMOVSXWD",
    "VPMOVZXBD",
    "VPMOVZXWD",
    "VPTEST",
];
/// Instructions with a number behind their operands.
const WITH_NUMBER: &[&str] = &["VCMPPS", "VSHUFPS", "VPBLENDD", "VBLENDVPS", "VPERM2I128"];

/// Some instructions of every kind: their name, and their bytes.
fn all() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut one = |name: &str, write: &dyn Fn(&mut Assembler)| {
        let mut asm = Assembler::default();
        write(&mut asm);
        all.push((name.to_lowercase(), asm.finish().expect("all labels are placed")));
    };
    for (name, vector) in Vector::ALL {
        let first = if ONE_SOURCE.contains(name) { Ymm(0) } else { Ymm(12) };
        let places =
            [at(RDX, 0x40), at(R10, -0x1234), at(RSP, 0x20), Memory { index: Some(R14), ..at(R8, 0) }];
        match *name {
            // Their own functions write them.
            "VPSHIFTD" | "VPSHIFTQ" | "VPGATHERDD" => continue,
            "VMOVMSKPS" => one(name, &|asm| asm.vector_one(*vector, Ymm(RAX.0), Ymm(13))),
            "VMOVDQU_STORE" => places.into_iter().for_each(|to| one("vmovdqu", &|asm| asm.store(to, Ymm(9)))),
            _ => {
                let number = WITH_NUMBER.contains(name);
                let mut write = |b: assembler::Operand| {
                    one(name, &|asm| {
                        if number {
                            asm.vector_immediate(*vector, Ymm(9), first, b, 0x50);
                        } else {
                            asm.vector(*vector, Ymm(9), first, b);
                        }
                    });
                };
                // A load under a mask has memory to load from.
                if *name != "VPMASKMOVD" {
                    write(Ymm(14).into());
                    write(Ymm(3).into());
                }
                places.into_iter().for_each(|place| write(place.into()));
            }
        }
    }
    for (name, kind) in [("vpsrld", assembler::SHIFT_RIGHT), ("vpsrad", assembler::SHIFT_RIGHT_SIGNED)] {
        one(name, &|asm| asm.shift(kind, Ymm(9), Ymm(14), 31));
    }
    one("vpslld", &|asm| asm.shift(assembler::SHIFT_LEFT, Ymm(1), Ymm(2), 3));
    one("vpsrlq", &|asm| asm.shift_wide(assembler::SHIFT_RIGHT, Ymm(9), Ymm(14), 32));
    one("vpsllq", &|asm| asm.shift_wide(assembler::SHIFT_LEFT, Ymm(1), Ymm(2), 32));
    one("vmovdqu", &|asm| asm.store_sixteen(at(R10, 8), Ymm(9)));
    one("vmovq", &|asm| asm.store_eight(at(RAX, -0x1234), Ymm(3)));
    one("vpermq", &|asm| asm.quarters(Ymm(9), Ymm(14), 0xd8));
    one("vpgatherdd", &|asm| asm.gather(Ymm(9), RAX, Ymm(14), -0x1234, Ymm(5)));
    one("vblendvps", &|asm| asm.blend(Ymm(1), Ymm(2), Ymm(3), Ymm(15)));
    one("vzeroupper", &Assembler::zero_upper);
    let pairs: [(General, General); 2] = [(RAX, R14), (R8, RDX)];
    for (to, from) in pairs {
        for (name, operation) in [
            ("add", Arithmetic::Add),
            ("or", Arithmetic::Or),
            ("and", Arithmetic::And),
            ("sub", Arithmetic::Subtract),
            ("cmp", Arithmetic::Compare),
            ("xor", Arithmetic::Xor),
            ("mov", Arithmetic::Move),
            ("test", Arithmetic::Test),
        ] {
            one(name, &|asm| asm.wide(operation, to, from));
            one(name, &|asm| asm.narrow(operation, to, from));
        }
        one("add", &|asm| asm.wide_memory(Arithmetic::Add, to, at(from, 8)));
        one("cmp", &|asm| asm.wide_memory(Arithmetic::Compare, to, at(from, 8)));
        one("sub", &|asm| asm.narrow_memory(Arithmetic::Subtract, to, at(from, 8)));
        one("vmovd", &|asm| asm.first_lane(to, Ymm(9)));
        one("vmovd", &|asm| asm.first_lane(from, Ymm(3)));
        one("imul", &|asm| asm.multiply_memory(false, to, at(from, 8)));
        one("imul", &|asm| asm.multiply(to, from));
        one("imul", &|asm| asm.multiply_number(to, 31));
        one("movsxd", &|asm| asm.load_signed(to, at(from, 8)));
        one("movsxd", &|asm| asm.extend_signed(to, from));
        one("cmp", &|asm| asm.compare_wide_number(to, 0xff));
        one("mov", &|asm| asm.load_wide(to, at(from, 8)));
        one("mov", &|asm| asm.load_narrow(to, at(from, 8)));
        one("mov", &|asm| asm.store_wide(at(to, 8), from));
        one("mov", &|asm| asm.store_narrow(at(to, 8), from));
        one("movzx", &|asm| asm.load_byte(to, at(from, 8)));
        one("movzx", &|asm| asm.low_byte(to, from));
        one("mov", &|asm| asm.store_byte(at(to, 8), from));
        one("add", &|asm| asm.add_to_memory(at(to, 8), from));
        one("inc", &|asm| asm.increment(at(to, 8)));
        one("cmp", &|asm| asm.compare_memory(at(to, 8), 77));
        one("cmp", &|asm| asm.compare_number(to, 0xff));
        one("popcnt", &|asm| asm.count_ones(to, from));
        one("not", &|asm| asm.not(to));
        one("add", &|asm| asm.add_number(to, -1));
        one("add", &|asm| asm.add_narrow_number(to, 28));
        one("and", &|asm| asm.and_number(to, 0x3e0));
        one("test", &|asm| asm.test_byte(to, 15));
        one("mov", &|asm| asm.store_number(at(to, 8), 77));
        one("ror", &|asm| asm.rotate_memory(at(to, 8), 8));
        one("shl", &|asm| asm.shift_left_wide(to, 32));
        one("shr", &|asm| asm.shift_right_wide(to, 11));
        one("mov", &|asm| asm.number(to, 77));
        one("movabs", &|asm| asm.address(to, 0x1234_5678_9abc_def0));
        one("shl", &|asm| asm.shift_left(to, 5));
        one("shr", &|asm| asm.shift_right(to, 8));
        one("push", &|asm| asm.push(to));
        one("pop", &|asm| asm.pop(to));
        one("call", &|asm| asm.call(to));
        // A comparison, a move under a condition, and a store.
        one("cmp", &|asm| asm.raise_memory(at(to, 8), from));
    }
    one("ret", &Assembler::ret);
    for (name, condition) in [
        ("jb", Some(Condition::Below)),
        ("jae", Some(Condition::NotBelow)),
        ("je", Some(Condition::Zero)),
        ("jne", Some(Condition::NotZero)),
        ("jbe", Some(Condition::NotAbove)),
        ("ja", Some(Condition::Above)),
        ("jl", Some(Condition::Less)),
        ("jge", Some(Condition::NotLess)),
        ("jle", Some(Condition::NotGreater)),
        ("jg", Some(Condition::Greater)),
        ("jmp", None),
    ] {
        one(name, &|asm| {
            let behind = asm.label();
            match condition {
                Some(condition) => asm.jump_if(condition, behind),
                None => asm.jump(behind),
            }
            asm.place(behind);
        });
    }
    all
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn objdump_reads_what_was_meant() {
    let all = all();
    if let Some(file) = std::env::var_os("UPDATE_ASSEMBLER") {
        let bytes: Vec<u8> = all.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        std::fs::write(file, bytes).expect("writable");
        return;
    }
    let text = fixtures::text("sm/assembler.txt").expect("the fixture");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    for (name, bytes) in &all {
        // What one function writes may be several instructions.
        let mut left = bytes.len();
        let mut have = Vec::new();
        let mut first = None;
        while left > 0 {
            let (bytes, text) = lines.next().and_then(|line| line.split_once('\t')).expect("a line for each");
            left = left.checked_sub(bytes.split(' ').count()).expect("instructions end where they should");
            have.push(bytes.to_owned());
            first.get_or_insert(text.to_owned());
        }
        assert_eq!(have.join(" "), hex(bytes), "{name}");
        let read = first.unwrap_or_default();
        let mnemonic =
            read.trim_start_matches("rex ").split(' ').next().unwrap_or("").trim_start_matches("rex.");
        let compares = name == "vcmpps" && mnemonic.starts_with("vcmp");
        assert!(mnemonic == name || compares, "{name} is read as {read}");
    }
    assert_eq!(lines.next(), None);
}
