//! Command words: method headers with their data, from the rows of the class tables.

use nv_abi::{
    gpfifo::Entry,
    // Later classes inherit the methods used here.
    host::AMPERE_CHANNEL_GPFIFO_A as host,
    layout::Field,
    method::{Form, Header, Method},
};

use crate::Error;

/// The subchannel that compute methods use.
pub(crate) const COMPUTE: u8 = 1;
/// The subchannel that copy methods use.
pub(crate) const COPY: u8 = 4;
/// Host methods work on any; clients use the first.
pub(crate) const HOST: u8 = 0;

/// Words being built.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pushbuffer {
    pub(crate) words: Vec<u32>,
}

impl Pushbuffer {
    fn header(&mut self, form: Form, subchannel: u8, method: &Method, count: usize) -> Result<(), Error> {
        let header = Header { form, subchannel, address: method.address, count: count as u32 };
        self.words.push(header.encode().map_err(|error| Error::Queue(error.to_string()))?);
        Ok(())
    }

    /// Data words for `method` and those after it.
    pub(crate) fn methods(&mut self, subchannel: u8, first: &Method, data: &[u32]) -> Result<(), Error> {
        self.header(Form::Increment, subchannel, first, data.len())?;
        self.words.extend_from_slice(data);
        Ok(())
    }

    /// Data words that all go to `method`.
    pub(crate) fn repeated(&mut self, subchannel: u8, method: &Method, data: &[u32]) -> Result<(), Error> {
        self.header(Form::NonIncrement, subchannel, method, data.len())?;
        self.words.extend_from_slice(data);
        Ok(())
    }

    /// A semaphore of the host; `execute` says what is done with the value. Returns the index of its five data words.
    pub(crate) fn semaphore(&mut self, address: u64, value: u64, execute: u32) -> Result<usize, Error> {
        let place = self.words.len() + 1;
        let [address_upper, address_lower] = upper_lower(address);
        let [upper, lower] = upper_lower(value);
        self.methods(HOST, &host::SEM_ADDR_LO, &[address_lower, address_upper, lower, upper, execute])?;
        Ok(place)
    }
}

/// A data word from a method's fields.
pub(crate) fn data(fields: &[(&Field, u64)]) -> Result<u32, Error> {
    Ok(crate::rm::flags(fields)? as u32)
}

/// The upper and the lower word, in the order of most address methods.
pub(crate) fn upper_lower(value: u64) -> [u32; 2] {
    [(value >> 32) as u32, value as u32]
}

/// Stores 32 bits once the host has read everything before; nothing else is waited for.
pub(crate) fn fence(address: u64, value: u32) -> Result<Vec<u32>, Error> {
    use host::SEM_EXECUTE as e;
    let mut push = Pushbuffer::default();
    push.semaphore(address, value.into(), data(&[(&e::OPERATION, e::OPERATION::RELEASE)])?)?;
    Ok(push.words)
}

/// A ring entry. As a subroutine, as the seed and today's client mark every one.
pub(crate) fn entry(address: u64, words: u32) -> Result<u64, Error> {
    let entry = Entry::Segment { address, length: words, subroutine: true, sync: false, conditional: false };
    Ok(entry.encode()?)
}
