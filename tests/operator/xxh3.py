"""XXH3-64 of inputs of at most 128 bytes: the checksum of frames."""

MASK = (1 << 64) - 1
PRIME64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
)


def word(data, at, size=8):
    return int.from_bytes(data[at : at + size], "little")


def fold(left, right):
    product = left * right
    return (product & MASK) ^ (product >> 64)


def avalanche(value):
    value ^= value >> 37
    value = value * 0x165667919E3779F9 & MASK
    return value ^ value >> 32


def avalanche_64(value):
    value ^= value >> 33
    value = value * PRIME64[1] & MASK
    value ^= value >> 29
    value = value * PRIME64[2] & MASK
    return value ^ value >> 32


def rotate(value, bits):
    return (value << bits | value >> 64 - bits) & MASK


def mix(data, at, secret):
    return fold(word(data, at) ^ word(SECRET, secret), word(data, at + 8) ^ word(SECRET, secret + 8))


def xxh3_64(data):
    length = len(data)
    if length == 0:
        return avalanche_64(word(SECRET, 56) ^ word(SECRET, 64))
    if length <= 3:
        combined = data[0] << 16 | data[length >> 1] << 24 | data[-1] | length << 8
        return avalanche_64(combined ^ word(SECRET, 0, 4) ^ word(SECRET, 4, 4))
    if length <= 8:
        flip = word(SECRET, 8) ^ word(SECRET, 16)
        value = (word(data, length - 4, 4) + (word(data, 0, 4) << 32) & MASK) ^ flip
        value ^= rotate(value, 49) ^ rotate(value, 24)
        value = value * 0x9FB21C651E98DF25 & MASK
        value ^= (value >> 35) + length
        value = value * 0x9FB21C651E98DF25 & MASK
        return value ^ value >> 28
    if length <= 16:
        low = word(data, 0) ^ word(SECRET, 24) ^ word(SECRET, 32)
        high = word(data, length - 8) ^ word(SECRET, 40) ^ word(SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return avalanche(length + swapped + high + fold(low, high) & MASK)
    if length > 128:
        raise ValueError("no frame of these cases is so long")
    total = length * PRIME64[0]
    for step in range((length - 1) // 32, -1, -1):
        total += mix(data, 16 * step, 32 * step)
        total += mix(data, length - 16 * (step + 1), 32 * step + 16)
    return avalanche(total & MASK)
