//! The signature of a request: AWS Signature Version 4, in a header.

use crate::credentials::Credentials;
use ring::{digest, hmac};
use time::OffsetDateTime;

/// How the algorithm is called.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// What is signed of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed<'a> {
    pub(crate) method: &'a str,
    /// Encoded.
    pub(crate) path: &'a str,
    /// Encoded and sorted.
    pub(crate) query: &'a str,
    /// Names in lower case, sorted; `host` and all that begin with `x-amz-` are among them.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// [`hash`] of the body.
    pub(crate) payload_hash: &'a str,
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    hexadecimal(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// A moment as `20130524T000000Z`.
pub(crate) fn stamp(moment: OffsetDateTime) -> String {
    let (date, time) = (moment.date(), moment.time());
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        time.hour(),
        time.minute(),
        time.second()
    )
}

/// The header `authorization`. `stamp` is what the header `x-amz-date` says.
pub(crate) fn authorization(
    request: Signed<'_>,
    credentials: &Credentials,
    region: &str,
    stamp: &str,
) -> String {
    let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let headers: String =
        request.headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let canonical = format!(
        "{}\n{}\n{}\n{headers}\n{names}\n{}",
        request.method, request.path, request.query, request.payload_hash
    );
    let day = stamp.get(..8).unwrap_or_default();
    let scope = format!("{day}/{region}/s3/aws4_request");
    let to_sign = format!("{ALGORITHM}\n{stamp}\n{scope}\n{}", hash(canonical.as_bytes()));
    let secret = format!("AWS4{}", credentials.secret_key);
    let mut key = secret.into_bytes();
    for word in [day, region, "s3", "aws4_request"] {
        key = mac(&key, word.as_bytes());
    }
    let signature = hexadecimal(&mac(&key, to_sign.as_bytes()));
    format!(
        "{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        credentials.access_key
    )
}

fn mac(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), bytes).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of "Signature Calculations for the Authorization Header" in the reference of Amazon S3.
    #[test]
    fn signatures_are_those_of_the_reference() {
        let keys = Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        };
        let (host, moment) = (("host", "examplebucket.s3.amazonaws.com"), ("x-amz-date", "20130524T000000Z"));
        let nothing = hash(b"");
        let content = ("x-amz-content-sha256", &nothing[..]);
        let text = hash(b"Welcome to Amazon S3.");
        let put = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            host,
            ("x-amz-content-sha256", &text[..]),
            moment,
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let get = [host, ("range", "bytes=0-9"), content, moment];
        let plain = [host, content, moment];
        for (method, path, query, headers, payload_hash, signature) in [
            (
                "GET",
                "/test.txt",
                "",
                &get[..],
                &nothing,
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                "PUT",
                "/test%24file.text",
                "",
                &put,
                &text,
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            ),
            (
                "GET",
                "/",
                "lifecycle=",
                &plain,
                &nothing,
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                "GET",
                "/",
                "max-keys=2&prefix=J",
                &plain,
                &nothing,
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ] {
            let request = Signed { method, path, query, headers, payload_hash };
            let found = authorization(request, &keys, "us-east-1", "20130524T000000Z");
            assert!(found.ends_with(&format!("Signature={signature}")), "{method} {path}?{query}: {found}");
            assert!(
                found.contains("Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"),
                "{found}"
            );
        }
    }

    #[test]
    fn moments_are_written_as_signatures_have_them() {
        let moment = OffsetDateTime::from_unix_timestamp(1_369_353_600).expect("it is a moment");
        assert_eq!(stamp(moment), "20130524T000000Z");
    }
}
