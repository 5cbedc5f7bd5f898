//! The decoder and the encoder on words that nobody chose.
use proptest::prelude::*;
use sass::{Arch, Control, DecodeError, OPCODE_MASK, decode, encode, rows};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any 128 bits decode to an instruction that encodes back, or to an error that names what is wrong.
    #[test]
    fn any_word_decodes_or_is_refused(word: u128, address in 0u64..1 << 40) {
        for arch in Arch::ALL {
            match decode(word, address & !15, arch) {
                Ok(instruction) => {
                    prop_assert_eq!(encode(&instruction), Ok(word));
                    prop_assert!(!instruction.to_string().is_empty());
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    /// Random operands and fields of each row, which the opcode alone would seldom reach.
    #[test]
    fn random_words_of_a_row_encode_back(bits: u128, fewer: u128, sparse: bool, pick: prop::sample::Index) {
        let row = &rows()[pick.index(rows().len())];
        let bits = if sparse { bits & fewer } else { bits };
        for arch in Arch::ALL.into_iter().filter(|&arch| row.exists_on(arch)) {
            let open = row.covered(arch) & !OPCODE_MASK;
            let opcode = u128::from(row.opcode & 0xfff) | u128::from(row.opcode >> 12) << 91;
            let word = row.fixed & !open | bits & open | opcode;
            match decode(word, 0x1000, arch) {
                Ok(instruction) => {
                    prop_assert_eq!(encode(&instruction), Ok(word), "{} {}", arch, instruction);
                    prop_assert!(instruction.to_string().contains(instruction.op.name()));
                    prop_assert_eq!(instruction.control, Control::from_word(word));
                }
                // The opcode is known, whatever the rest is.
                Err(error) => prop_assert!(!matches!(error, DecodeError::UnknownOpcode { .. }), "{}", error),
            }
        }
    }
}
