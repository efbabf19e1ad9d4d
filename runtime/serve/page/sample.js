// Reads the binary message of a tap: a header, and one value of an output.
//
//   u32 tap, u32 flags, u64 tick, i64 media_ns, u32 width, u32 height, u16 kind, u16 reserved, u32 bytes; the bytes
//
// All numbers are little endian. `width` and `height` are those of the original; what is shown may be smaller.

const HEADER = 40, PICTURE_HEADER = 8;
const NO_VALUE = 1; // a flag: the output had nothing on this tick
const KINDS = {1: 'picture', 2: 'tensor', 3: 'records', 4: 'packet'};

export function readSample(buffer) {
  const view = new DataView(buffer);
  const sample = {
    tap: view.getUint32(0, true), hasValue: (view.getUint32(4, true) & NO_VALUE) === 0,
    tick: Number(view.getBigUint64(8, true)), mediaNs: Number(view.getBigInt64(16, true)),
    width: view.getUint32(24, true), height: view.getUint32(28, true), kind: KINDS[view.getUint16(32, true)],
  };
  const bytes = view.getUint32(36, true), start = HEADER;
  if (!sample.hasValue || !sample.kind) return sample;
  if (sample.kind === 'picture') {
    const width = view.getUint32(start, true), height = view.getUint32(start + 4, true);
    const pixels = new Uint8ClampedArray(buffer, start + PICTURE_HEADER, bytes - PICTURE_HEADER);
    sample.picture = new ImageData(pixels, width, height);
  } else {
    sample.value = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start, bytes)));
  }
  return sample;
}
