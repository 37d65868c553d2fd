// Bytes as text of 91 letters, two for 13 bits: a page that carries them is 8 % shorter than with base64. The letters are
// those of ASCII from # to ~ without <, which alone means something within a script element.

const kLetters = 91;
const kBits = 13;
const kFirst = 35;
const kLeftOut = 60;
const letter = (value) => String.fromCharCode(kFirst + value + (kFirst + value >= kLeftOut ? 1 : 0));
const valueOf = (code) => code - kFirst - (code > kLeftOut ? 1 : 0);

export function lettersOf(bytes) {
  const pairs = [];
  let bits = 0;
  let count = 0;
  const take = () => {
    const value = bits & ((1 << kBits) - 1);
    pairs.push(letter(value % kLetters) + letter(Math.floor(value / kLetters)));
    bits >>>= kBits;
    count -= kBits;
  };
  for (const byte of bytes) {
    bits |= byte << count;
    count += 8;
    if (count >= kBits) take();
  }
  if (count > 0) take();
  return pairs.join('');
}

/** The first `size` bytes of what lettersOf() wrote. */
export function bytesOf(text, size) {
  const bytes = new Uint8Array(size);
  let bits = 0;
  let count = 0;
  for (let i = 0, at = 0; at < size; i += 2) {
    bits |= (valueOf(text.charCodeAt(i)) + kLetters * valueOf(text.charCodeAt(i + 1))) << count;
    for (count += kBits; count >= 8 && at < size; count -= 8, bits >>>= 8) bytes[at++] = bits & 255;
  }
  return bytes;
}
