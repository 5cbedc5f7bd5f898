//! The decoder and the encoder on words that nobody chose.
use fixtures::{
    properties,
    property::{any, one_of, within},
};
use sass::{Arch, Control, DecodeError, OPCODE_MASK, decode, encode, rows};

properties! { 2000 cases;
    /// Any 128 bits decode to an instruction that encodes back, or to an error that names what is wrong.
    fn any_word_decodes_or_is_refused(word in any::<u128>, address in within(0u64..1 << 40)) {
        for arch in Arch::ALL {
            match decode(word, address & !15, arch) {
                Ok(instruction) => {
                    assert_eq!(encode(&instruction), Ok(word));
                    assert!(!instruction.to_string().is_empty());
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }

    /// Random operands and fields of each row, which the opcode alone would seldom reach.
    fn random_words_of_a_row_encode_back(bits in any::<u128>, fewer in any::<u128>, sparse in any::<bool>, row in one_of(rows())) {
        let bits = if sparse { bits & fewer } else { bits };
        for arch in Arch::ALL.into_iter().filter(|&arch| row.exists_on(arch)) {
            let open = row.covered(arch) & !OPCODE_MASK;
            let opcode = u128::from(row.opcode & 0xfff) | u128::from(row.opcode >> 12) << 91;
            let word = row.fixed & !open | bits & open | opcode;
            match decode(word, 0x1000, arch) {
                Ok(instruction) => {
                    assert_eq!(encode(&instruction), Ok(word), "{arch} {instruction}");
                    assert!(instruction.to_string().contains(instruction.op.name()));
                    assert_eq!(instruction.control, Control::from_word(word));
                }
                // The opcode is known, whatever the rest is.
                Err(error) => assert!(!matches!(error, DecodeError::UnknownOpcode { .. }), "{}", error),
            }
        }
    }
}
