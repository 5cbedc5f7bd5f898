//! Decoded operands that are used more than once.

/// Room for the last decoded operands.
#[derive(Clone, Debug)]
pub(super) struct Slots<T, const N: usize> {
    names: [Option<u16>; N],
    next: usize,
    decoded: [T; N],
}

/// The place of an operand.
pub(super) struct Slot<'a, T> {
    /// It is there already.
    pub known: bool,
    pub decoded: &'a mut T,
}

impl<T: Copy, const N: usize> Slots<T, N> {
    pub fn new(value: T) -> Self {
        Slots { names: [None; N], next: 0, decoded: [value; N] }
    }

    /// The operand of that name, or the place that was filled the longest ago.
    #[inline]
    pub fn of(&mut self, name: Option<u16>) -> Slot<'_, T> {
        if name.is_some()
            && let Some(at) = self.names.iter().position(|known| *known == name)
        {
            return Slot { known: true, decoded: &mut self.decoded[at] };
        }
        let at = self.next % N;
        self.next = at + 1;
        self.names[at] = name;
        Slot { known: false, decoded: &mut self.decoded[at] }
    }

    #[inline]
    pub fn forget(&mut self) {
        self.names = [None; N];
    }
}
