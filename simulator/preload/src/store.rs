//! What an instruction stores to memory: of those by which programs ring doorbells, plain moves and exchanges of 32 or
//! 64 bits of a general register or a constant (Intel's manual, volume 2: MOV 89 and C7, XCHG 87, MOVNTI 0F C3).
#![forbid(unsafe_code)]

/// General registers in the order of their numbers in instructions: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
pub(crate) type Registers = [u64; 16];

/// A store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Store {
    /// Where to.
    pub(crate) address: u64,
    /// What: the low half only where it is not wide.
    pub(crate) value: u64,
    /// 64 bits, not 32.
    pub(crate) wide: bool,
    /// The register that takes what was there.
    pub(crate) swapped: Option<usize>,
    /// Bytes of the instruction.
    pub(crate) length: u64,
}

/// The bytes of an instruction, one after the other.
struct Code<F> {
    fetch: F,
    taken: u64,
}

impl<F: FnMut(u64) -> Option<u8>> Code<F> {
    fn byte(&mut self) -> Option<u8> {
        let byte = (self.fetch)(self.taken)?;
        self.taken += 1;
        Some(byte)
    }

    /// A signed byte, extended.
    fn short(&mut self) -> Option<u64> {
        Some(i64::from(self.byte()?.cast_signed()).cast_unsigned())
    }

    /// A signed word of 32 bits, extended.
    fn word(&mut self) -> Option<u64> {
        let bytes = [self.byte()?, self.byte()?, self.byte()?, self.byte()?];
        Some(i64::from(i32::from_le_bytes(bytes)).cast_unsigned())
    }
}

/// The store that the instruction at `at` makes, whose bytes `fetch` gives by number; `None` if it is another one, or
/// makes none.
pub(crate) fn decode(at: u64, registers: &Registers, fetch: impl FnMut(u64) -> Option<u8>) -> Option<Store> {
    let mut code = Code { fetch, taken: 0 };
    let mut opcode = code.byte()?;
    // Segments that begin at 0. Those of threads (64, 65) do not.
    while matches!(opcode, 0x26 | 0x2e | 0x36 | 0x3e) {
        opcode = code.byte()?;
    }
    let mut rex = 0;
    if opcode & 0xf0 == 0x40 {
        rex = opcode;
        opcode = code.byte()?;
    }
    let high = |bit: u8| usize::from(rex >> bit & 1) << 3;
    let (is_constant, is_swap) = match opcode {
        0x89 => (false, false),
        0x87 => (false, true),
        0xc7 => (true, false),
        0x0f if code.byte()? == 0xc3 => (false, false),
        _ => return None,
    };
    let form = code.byte()?;
    let (mode, number, base) = (form >> 6, usize::from(form >> 3 & 7), usize::from(form & 7));
    // Between registers, or not a move at all.
    if mode == 3 || (is_constant && number != 0) {
        return None;
    }
    let mut address = 0u64;
    let mut relative = false;
    let base = if base == 4 {
        let scaled = code.byte()?;
        let index = usize::from(scaled >> 3 & 7) | high(1);
        if index != 4 {
            address = registers[index] << (scaled >> 6);
        }
        let base = usize::from(scaled & 7);
        (mode != 0 || base != 5).then_some(base)
    } else {
        relative = mode == 0 && base == 5;
        (!relative).then_some(base)
    };
    if let Some(base) = base {
        address = address.wrapping_add(registers[base | high(0)]);
    }
    let displacement = match (mode, base) {
        (1, _) => code.short()?,
        (2, _) | (0, None) => code.word()?,
        _ => 0,
    };
    address = address.wrapping_add(displacement);
    let register = number | high(2);
    let value = if is_constant { code.word()? } else { registers[register] };
    if relative {
        address = address.wrapping_add(at).wrapping_add(code.taken);
    }
    let swapped = is_swap.then_some(register);
    Some(Store { address, value, wide: rex & 8 != 0, swapped, length: code.taken })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Register N holds 0x1000 * (N + 1).
    fn registers() -> Registers {
        std::array::from_fn(|number| 0x1000 * (number as u64 + 1))
    }

    fn read(bytes: &[u8]) -> Option<Store> {
        decode(0x40_0000, &registers(), |at| bytes.get(at as usize).copied())
    }

    /// What GNU's assembler makes of each line.
    #[test]
    fn moves_and_exchanges_say_where_what_and_how_long() {
        let narrow = |address, value, length| Store { address, value, wide: false, swapped: None, length };
        for (text, bytes, expected) in [
            ("mov %eax,(%rdx)", &[0x89, 0x02][..], narrow(0x3000, 0x1000, 2)),
            ("mov %esi,0x90(%rdi)", &[0x89, 0xb7, 0x90, 0, 0, 0], narrow(0x8090, 0x7000, 6)),
            ("mov %eax,-8(%rbp)", &[0x89, 0x45, 0xf8], narrow(0x5ff8, 0x1000, 3)),
            ("mov %r9d,(%r12)", &[0x45, 0x89, 0x0c, 0x24], narrow(0xd000, 0xa000, 4)),
            ("mov %r9d,0(%r13)", &[0x45, 0x89, 0x4d, 0], narrow(0xe000, 0xa000, 4)),
            ("mov %ecx,(%rax,%r10,4)", &[0x42, 0x89, 0x0c, 0x90], narrow(0x2_d000, 0x2000, 4)),
            ("mov %ecx,0x90(,%rbx,8)", &[0x89, 0x0c, 0xdd, 0x90, 0, 0, 0], narrow(0x2_0090, 0x2000, 7)),
            (
                "mov %ecx,0x12345678",
                &[0x89, 0x0c, 0x25, 0x78, 0x56, 0x34, 0x12],
                narrow(0x1234_5678, 0x2000, 7),
            ),
            ("mov %eax,0x100(%rip)", &[0x89, 0x05, 0, 1, 0, 0], narrow(0x40_0106, 0x1000, 6)),
            ("movl $5,0x10(%rip)", &[0xc7, 0x05, 0x10, 0, 0, 0, 5, 0, 0, 0], narrow(0x40_001a, 5, 10)),
            ("movl $7,0x90(%rsp)", &[0xc7, 0x84, 0x24, 0x90, 0, 0, 0, 7, 0, 0, 0], narrow(0x5090, 7, 11)),
            ("movnti %eax,(%rdx)", &[0x0f, 0xc3, 0x02], narrow(0x3000, 0x1000, 3)),
            ("mov %ds:%eax,(%rdx)", &[0x3e, 0x89, 0x02], narrow(0x3000, 0x1000, 3)),
        ] {
            assert_eq!(read(bytes), Some(expected), "{text}");
        }
        let wide = Store { address: 0x3000, value: 0x1000, wide: true, swapped: None, length: 3 };
        assert_eq!(read(&[0x48, 0x89, 0x02]), Some(wide), "mov %rax,(%rdx)");
        let minus = read(&[0x48, 0xc7, 0x02, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(minus.map(|store| (store.value, store.wide)), Some((u64::MAX, true)), "movq $-1,(%rdx)");
        let swap = Store { address: 0x3000, value: 0xf000, wide: false, swapped: Some(14), length: 3 };
        assert_eq!(read(&[0x44, 0x87, 0x32]), Some(swap), "xchg %r14d,(%rdx)");
    }

    #[test]
    fn everything_else_is_none() {
        for (text, bytes) in [
            ("mov %eax,%edx", &[0x89, 0xc2][..]),
            ("mov (%rdx),%eax", &[0x8b, 0x02]),
            ("mov %ax,(%rdx)", &[0x66, 0x89, 0x02]),
            ("mov %al,(%rdx)", &[0x88, 0x02]),
            ("mov %eax,%fs:(%rdx)", &[0x64, 0x89, 0x02]),
            ("mov %eax,(%edx)", &[0x67, 0x89, 0x02]),
            ("movd %xmm0,(%rdx)", &[0x66, 0x0f, 0x7e, 0x02]),
            ("lock orl $0,(%rsp)", &[0xf0, 0x83, 0x0c, 0x24, 0]),
            ("xbegin", &[0xc7, 0xf8, 0, 0, 0, 0]),
            ("stos", &[0xab]),
            ("cut off", &[0x89, 0xb7, 0x90]),
            ("nothing", &[]),
        ] {
            assert_eq!(read(bytes), None, "{text}");
        }
    }

    #[test]
    fn no_bytes_are_read_past_the_longest_instruction() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..200_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let bytes = [random, random.rotate_left(29)].map(u64::to_le_bytes);
            let store = decode(random, &registers(), |at| {
                assert!(
                    at < 15 || bytes.as_flattened()[..at as usize].iter().all(|byte| byte & 0xe7 == 0x26)
                );
                bytes.as_flattened().get(at as usize).copied()
            });
            assert!(store.is_none_or(|store| store.length <= 15));
        }
    }
}
