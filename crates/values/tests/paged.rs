//! Collections that lie in pages are what they were, and lie as they always did.

mod common;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use syros_values::{
    Group, Hash, List, ListEnd, Paged, PagedHead, Pages, Saved, Score, Set, SortedSet, Source, Stream,
    StreamId, Value, put_paged, take_paged,
};

#[derive(Clone, Default)]
struct Store(Arc<Mutex<BTreeMap<u64, Vec<u8>>>>);

impl Pages for Store {
    fn read(&self, number: u64, see: &mut dyn FnMut(&[u8])) {
        let page = self.0.lock().unwrap().get(&number).cloned();
        see(&page.unwrap_or_else(|| panic!("no page {number}")));
    }

    fn damaged(&self, number: u64) -> ! {
        panic!("page {number} is damaged")
    }
}

impl Store {
    fn source(&self) -> Source {
        Source::new(Box::new(self.clone()))
    }

    fn apply(&self, saved: Saved) {
        let mut pages = self.0.lock().unwrap();
        pages.extend(saved.written);
        saved.deleted.iter().for_each(|number| drop(pages.remove(number).expect("it is there")));
        let mut dead = saved.dead;
        while let Some(tree) = dead.pop() {
            let page = pages.remove(&tree.number).expect("it is there");
            if tree.height > 0 {
                dead.extend(tree.children(&page).expect("an inner page"));
            }
        }
    }

    /// Puts a value into pages, and takes it out again.
    fn again(&self, value: &Value) -> (Value, Vec<u8>) {
        let mut encoded = Vec::new();
        let (_, saved) = put_paged(value, None, || 7, &mut encoded).expect("it is a tree");
        self.apply(saved);
        (take_paged(&encoded, &self.source()).expect("it was written"), encoded)
    }
}

fn name(number: u32) -> Vec<u8> {
    format!("name:{number}").into_bytes()
}

/// Large values of each kind.
fn values() -> Vec<Value> {
    const COUNT: u32 = 5000;
    let (mut hash, mut list, mut set) = (Hash::default(), List::default(), Set::default());
    let (mut sorted, mut stream) = (SortedSet::default(), Stream::default());
    for number in 0..COUNT {
        hash.set(&name(number), b"value");
        list.push(ListEnd::Right, &name(number));
        set.insert(&name(number));
        sorted.set(&name(number), Score::new(f64::from(number % 100)).unwrap());
        let id = StreamId::new(u64::from(number) + 1, 0);
        stream.append(id, 2, [&b"field"[..], &name(number)].into_iter());
    }
    let (mut one, mut many) = (hash.clone(), hash.clone());
    one.set_expiry(&name(7), NonZeroU64::new(1234));
    (0..COUNT).for_each(|number| many.set_expiry(&name(number), NonZeroU64::new(1 + u64::from(number))));
    vec![hash.into(), one.into(), many.into(), list.into(), set.into(), sorted.into(), stream.into()]
}

#[test]
fn what_was_put_into_pages_is_what_it_was() {
    for value in values() {
        let store = Store::default();
        let (found, encoded) = store.again(&value);
        assert_eq!(found.kind(), value.kind());
        assert_eq!((found.moments(), found.memory_bytes()), (value.moments(), value.memory_bytes()));
        assert_eq!(syros_values::Moments::of_encoding(&encoded), value.moments());
        assert_eq!(found.fingerprint(), value.fingerprint());
        assert_eq!(common::encoded(&found), common::encoded(&value));
        // Again, from the pages: nothing is written.
        let head = PagedHead::of_encoding(&encoded).expect("it is paged");
        assert_eq!(head.page_set, 7);
        let source = store.source();
        let found = take_paged(&encoded, &source).expect("it was written");
        let mut same = Vec::new();
        let (_, saved) =
            put_paged(&found, Some(&Paged { head, source }), || unreachable!("it has pages"), &mut same)
                .unwrap();
        assert_eq!((same, saved), (encoded.clone(), Saved { next: head.next, ..Saved::default() }));
        // Cut off anywhere, it is none.
        for cut in 0..encoded.len() {
            assert!(take_paged(&encoded[..cut], &store.source()).is_err(), "{:?}, {cut}", value.kind());
        }
        assert!(common::decoded(&encoded).is_err(), "no snapshot may have it");
        // Nobody needs it: nothing is left.
        let source = store.source();
        take_paged(&encoded, &source).expect("it was written");
        store.apply(Paged { head, source }.give_back());
        assert_eq!(store.0.lock().unwrap().len(), 0, "{:?}", value.kind());
    }
}

#[test]
fn groups_of_a_stream_are_what_they_were() {
    let mut stream = Stream::default();
    for number in 0..2000u32 {
        stream.append(StreamId::new(u64::from(number) + 1, 0), 2, [&b"field"[..], b"value"].into_iter());
    }
    let group = stream.create_group(b"group", StreamId::MIN, Some(0));
    assert!(group);
    let value = Value::from(stream);
    let (found, _) = Store::default().again(&value);
    assert_eq!(common::encoded(&found), common::encoded(&value));
    let group: Option<Group> = found.collection::<Stream>().unwrap().group(b"group");
    assert!(group.is_some());
}

/// Fixed for ever: stores have it.
#[test]
fn pages_lie_as_they_always_did() {
    let mut hash = Hash::default();
    hash.set(b"a", &[b'x'; 70]);
    let store = Store::default();
    let (_, encoded) = store.again(&hash.into());
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&encoded), "010400000701010000016880015c00");
    assert_eq!(
        hex(&store.0.lock().unwrap()[&0]),
        "0100000048000000f07c60350000016178787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
    );
    let mut list = List::default();
    (0..20).for_each(|number| list.push(ListEnd::Right, &[number; 300]));
    let store = Store::default();
    let (_, encoded) = store.again(&list.into());
    assert_eq!(hex(&encoded), "02040000070814010714078039b031");
    let pages = store.0.lock().unwrap();
    assert_eq!(
        hex(pages.last_key_value().unwrap().1),
        "070003e8078008b4070103e8078008b4070203e8078008b4070303e8078008b4070403e8078008b4070503e8078008b4070602b805d005f80400000000000000"
    );
}
