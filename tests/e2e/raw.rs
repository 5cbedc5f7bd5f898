//! Calls that no sane client makes: bad handles, bad parents, double frees, wrong classes.

use nv_abi::rm::{
    NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS, NV0080_ALLOC_PARAMETERS, NV2080_ALLOC_PARAMETERS,
    NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS, NV2080_CTRL_TIMER_GET_TIME_PARAMS, Status, class, control,
};
use tests::{Place, raw::Client};

pub mod bodies {
    pub use super::*;
    tests::everywhere! { one:
        handles_parents_and_classes_are_checked
        an_object_is_freed_once_and_its_children_with_it
        controls_check_object_command_and_size
        a_kept_answer_is_given_to_every_object_of_the_gpu
    }
}

const BAD: u32 = 0xdead_0001;
const ARCH_INFO: u32 = control::NV2080_CTRL_CMD_MC_GET_ARCH_INFO;

/// A client with a device; the GPU must have been opened by somebody.
fn client(place: &Place) -> (Client, u32) {
    let mut client = Client::open(place.backend(), place.system().branch()).unwrap();
    client.root = client.alloc(0, 0, class::NV01_ROOT_CLIENT, None).unwrap().unwrap();
    let device = device(&client, 0).unwrap();
    (client, device)
}

fn device(client: &Client, handle: u32) -> Result<u32, Status> {
    let mut parameters = client.record(&NV0080_ALLOC_PARAMETERS::STRUCT);
    client.alloc(client.root, handle, class::NV01_DEVICE_0, Some(&mut parameters)).unwrap()
}

fn subdevice(client: &Client, parent: u32) -> Result<u32, Status> {
    let mut parameters = client.record(&NV2080_ALLOC_PARAMETERS::STRUCT);
    client.alloc(parent, 0, class::NV20_SUBDEVICE_0, Some(&mut parameters)).unwrap()
}

fn arch_info(client: &Client, object: u32) -> Result<(), Status> {
    client.control(object, ARCH_INFO, &mut vec![0; arch_info_bytes(client)]).unwrap()
}

/// A control whose answer is never kept.
fn time(client: &Client, object: u32) -> Result<(), Status> {
    let bytes = client.record(&NV2080_CTRL_TIMER_GET_TIME_PARAMS::STRUCT).bytes().len();
    client.control(object, control::NV2080_CTRL_CMD_TIMER_GET_TIME, &mut vec![0; bytes]).unwrap()
}

fn arch_info_bytes(client: &Client) -> usize {
    client.record(&NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS::STRUCT).bytes().len()
}

// Statuses as an H200 with driver 580.159.04 gave them.

pub fn handles_parents_and_classes_are_checked(place: &Place) {
    let _opened = place.device(0);
    let (client, first) = client(place);
    assert_eq!(subdevice(&client, BAD), Err(Status::OBJECT_NOT_FOUND));
    assert_eq!(client.alloc(first, 0, 0xfff0, None).unwrap(), Err(Status::INVALID_CLASS));
    // A subdevice hangs from a device, not from the client.
    assert_eq!(subdevice(&client, client.root), Err(Status::INVALID_OBJECT_PARENT));
    assert_eq!(device(&client, first), Err(Status::INSERT_DUPLICATE_NAME));
    assert_eq!(device(&client, client.root), Err(Status::INVALID_OBJECT_PARENT));
    assert_eq!(device(&client, 0x5000), Ok(0x5000));
    let (mine, one) = (subdevice(&client, first), subdevice(&client, first));
    assert!(mine.is_ok());
    assert_eq!(one, Err(Status::INSUFFICIENT_RESOURCES));
}

pub fn an_object_is_freed_once_and_its_children_with_it(place: &Place) {
    let _opened = place.device(0);
    let (client, first) = client(place);
    let child = subdevice(&client, first).unwrap();
    assert_eq!(arch_info(&client, child), Ok(()));
    assert_eq!(client.free(client.root, first).unwrap(), Ok(()));
    // The module accepts that something is freed that is not there; using it is another matter.
    assert_eq!(client.free(client.root, first).unwrap(), Ok(()));
    assert_eq!(client.free(client.root, BAD).unwrap(), Ok(()));
    assert_eq!(time(&client, child), Err(Status::OBJECT_NOT_FOUND));
    assert_eq!(subdevice(&client, first), Err(Status::OBJECT_NOT_FOUND));
    // Nobody freed the child itself, so an answer that the module keeps still goes to it.
    assert_eq!(arch_info(&client, child), Ok(()));
    assert_eq!(client.free(client.root, child).unwrap(), Ok(()));
    assert_eq!(arch_info(&client, child), Err(Status::OBJECT_NOT_FOUND));
}

pub fn controls_check_object_command_and_size(place: &Place) {
    let _opened = place.device(0);
    let (client, first) = client(place);
    let child = subdevice(&client, first).unwrap();
    assert_eq!(arch_info(&client, child), Ok(()));
    assert_eq!(arch_info(&client, BAD), Err(Status::OBJECT_NOT_FOUND));
    assert_eq!(time(&client, child), Ok(()));
    assert_eq!(time(&client, first), Err(Status::NOT_SUPPORTED));
    let control = |bytes: usize| client.control(child, ARCH_INFO, &mut vec![0; bytes]).unwrap();
    let bytes = arch_info_bytes(&client);
    for wrong in [0, bytes - 4, bytes + 4] {
        assert_eq!(control(wrong), Err(Status::INVALID_ARGUMENT), "{wrong} bytes of {bytes}");
    }
}

pub fn a_kept_answer_is_given_to_every_object_of_the_gpu(place: &Place) {
    let _opened = place.device(0);
    let (client, first) = client(place);
    let child = subdevice(&client, first).unwrap();
    let ask = |object| {
        let mut bytes = vec![0xff; arch_info_bytes(&client)];
        client.control(object, ARCH_INFO, &mut bytes).unwrap().map(|()| bytes)
    };
    let answer = ask(child).unwrap();
    // The control belongs to subdevices, but the module looks for a kept answer before it looks at the class.
    assert_eq!(ask(first).unwrap(), answer);
    // The client has no GPU.
    assert_eq!(ask(client.root), Err(Status::NOT_SUPPORTED));
    assert_eq!(ask(BAD), Err(Status::OBJECT_NOT_FOUND));
    // What is asked about the system needs no object at all.
    let build = |object| {
        let bytes = client.record(&NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS::STRUCT).bytes().len();
        let command = control::NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2;
        client.control(object, command, &mut vec![0; bytes]).unwrap()
    };
    assert_eq!(build(client.root), Ok(()));
    assert_eq!((build(first), build(child), build(BAD)), (Ok(()), Ok(()), Ok(())));
}
