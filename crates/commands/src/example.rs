//! DEBUG PROTOCOL: a value of each type that a reply may have. They are Redis's: tests of clients expect them.

use crate::reply::{
    put_array, put_big_number, put_boolean, put_bulk, put_double, put_integer, put_map, put_nil, put_set,
    put_verbatim,
};

/// Appends the example of a type; false if there is none. That of an attribute is the reply which the attribute precedes:
/// replies of data have no attributes, and no pushes.
#[expect(clippy::approx_constant, reason = "it is Redis's example of a double, not a rounded pi")]
pub fn put_example(kind: &[u8], out: &mut Vec<u8>) -> bool {
    match kind.to_ascii_lowercase().as_slice() {
        b"string" => put_bulk(out, b"Hello World"),
        b"integer" => put_integer(out, 12345),
        b"double" => put_double(out, 3.141),
        b"bignum" => put_big_number(out, b"1234567999999999999999999999999999999"),
        b"null" => put_nil(out),
        b"array" => {
            put_array(out, 3);
            (0..3).for_each(|number| put_integer(out, number));
        }
        b"set" => {
            put_set(out, 3);
            (0..3).for_each(|number| put_integer(out, number));
        }
        b"map" => {
            put_map(out, 3);
            for number in 0..3 {
                put_integer(out, number);
                put_boolean(out, number == 1);
            }
        }
        b"attrib" => put_bulk(out, b"Some real reply following the attribute"),
        b"verbatim" => put_verbatim(out, b"txt", b"This is a verbatim\nstring"),
        b"true" => put_boolean(out, true),
        b"false" => put_boolean(out, false),
        _ => return false,
    }
    true
}
