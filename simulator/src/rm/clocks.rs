//! Controls without a public name by which NVIDIA's library finds the highest clocks of a GPU.
//!
//! Source: what libcuda 580 asked of an H200 for CU_DEVICE_ATTRIBUTE_CLOCK_RATE and _MEMORY_CLOCK_RATE, and the answers. What
//! words mean beside the domains and their frequencies is not known: they are answered as there.

use nv_abi::rm::Status;

use crate::profile::Clocks;

const DOMAINS: u32 = 0x2080_9009;
const DOMAINS_MEASURED: u32 = 0x2080_9001;
const DOMAIN_INFO: u32 = 0x2080_9064;
const STATES: u32 = 0x2080_a084;
const FREQUENCIES: u32 = 0x2080_a026;

/// Bits of domains, as one control names them and as another does.
const GRAPHICS: u32 = 1;
const MEMORY: u32 = 4;
const MEMORY_OF_STATES: u32 = 0x10;

/// Elements of a list, and where it begins: 4 words each.
const MOST: usize = 32;

/// The size of such a control's parameters in bytes.
pub(super) fn size(command: u32) -> Option<usize> {
    match command {
        DOMAINS | DOMAINS_MEASURED => Some(8),
        DOMAIN_INFO => Some(520),
        STATES => Some(4),
        FREQUENCIES => Some(532),
        _ => None,
    }
}

/// Answers one of these controls in its parameters, given as words.
pub(super) fn answer(command: u32, words: &mut [u32], clocks: Clocks) -> Result<(), Status> {
    let list = |count: u32, words: usize| match count as usize {
        count if count <= MOST.min(words / 4) => Ok(count),
        _ => Err(Status::INVALID_ARGUMENT),
    };
    match (command, words) {
        (DOMAINS, [_, domains]) => *domains = 0xd,
        (DOMAINS_MEASURED, [domains, _]) => *domains = 0x003c_0017,
        (STATES, [states]) => *states = 0x0100_0001,
        (DOMAIN_INFO, [_, count, elements @ ..]) => {
            let count = list(*count, elements.len())?;
            for [domain, other, info @ ..] in &mut elements.as_chunks_mut::<4>().0[..count] {
                *other = match *domain {
                    GRAPHICS => GRAPHICS,
                    MEMORY => MEMORY_OF_STATES,
                    _ => return Err(Status::INVALID_ARGUMENT),
                };
                *info = [1, 100];
            }
        }
        (FREQUENCIES, [_, state @ ..]) if state.len() > 4 => {
            state[..3].copy_from_slice(&[3, 4, 1]);
            let count = list(state[3], state.len() - 4)?;
            for [domain, _, kilohertz, _] in &mut state[4..].as_chunks_mut::<4>().0[..count] {
                *kilohertz = match *domain {
                    GRAPHICS => clocks.graphics_khz,
                    MEMORY_OF_STATES => clocks.memory_khz,
                    _ => return Err(Status::INVALID_ARGUMENT),
                };
            }
        }
        _ => return Err(Status::INVALID_ARGUMENT),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_answered_as_an_h200_answered_them() {
        let clocks = Clocks { graphics_khz: 1_980_000, memory_khz: 3_201_000 };
        let mut words = [0; 133];
        words[..10].copy_from_slice(&[0x400, 0, 0, 0, 2, 1, 0, 0, 0, 0x10]);
        answer(FREQUENCIES, &mut words, clocks).unwrap();
        assert_eq!(words[..13], [0x400, 3, 4, 1, 2, 1, 0, 0x001e_3660, 0, 0x10, 0, 0x0030_d7e8, 0]);
        let mut info = [0; 130];
        info[..7].copy_from_slice(&[0, 2, 1, 0, 0, 0, 4]);
        answer(DOMAIN_INFO, &mut info, clocks).unwrap();
        assert_eq!(info[..10], [0, 2, 1, 1, 1, 100, 4, 0x10, 1, 100]);
        words[4] = 32;
        words[5..].as_chunks_mut::<4>().0.iter_mut().for_each(|element| element[0] = GRAPHICS);
        answer(FREQUENCIES, &mut words, clocks).unwrap();
        assert_eq!(words[131], clocks.graphics_khz, "the last of 32");
        words[4] = 33;
        assert_eq!(answer(FREQUENCIES, &mut words, clocks), Err(Status::INVALID_ARGUMENT));
        assert_eq!(answer(DOMAINS, &mut [0; 3], clocks), Err(Status::INVALID_ARGUMENT));
    }

    #[test]
    fn each_control_takes_parameters_of_its_size() {
        let clocks = Clocks { graphics_khz: 1, memory_khz: 2 };
        for command in [DOMAINS, DOMAINS_MEASURED, DOMAIN_INFO, STATES, FREQUENCIES] {
            let mut words = vec![0; size(command).unwrap() / 4];
            assert_eq!(answer(command, &mut words, clocks), Ok(()), "{command:#x}");
        }
        assert_eq!(size(0x2080_9008), None);
    }
}
