// Places of a slider and the values they stand for. A wide range is bent, so that values near its default have room.

const PLACES = 1000;
const STEPS_MAX = 1000; // whole numbers of so many values get a place each
const WIDE = 50;        // a range so many times the default is bent

// `param`: as `describe` declares it, with `min` and `max`.
export class Scale {
  constructor({type, min, max, default: usual}) {
    Object.assign(this, {min, max, isWhole: type === 'int'});
    const size = Math.abs(Number(usual)) || 1;
    const isBent = max - min > WIDE * size && !(this.isWhole && max - min <= STEPS_MAX / 4);
    this.knee = isBent ? size / 2 : 0; // straight below it, as a logarithm above it
    this.places = this.isWhole && !isBent && max - min <= STEPS_MAX ? max - min : PLACES;
    this.from = this.bend(min);
    this.length = this.bend(max) - this.from;
  }

  bend(value) { return this.knee ? Math.asinh(value / this.knee) : value; }
  unbend(bent) { return this.knee ? Math.sinh(bent) * this.knee : bent; }

  placeOf(value) { return Math.round((this.bend(value) - this.from) / this.length * this.places); }

  // Three digits are as fine as a slider is; its ends are exact.
  valueAt(place) {
    if (place <= 0) return this.min;
    if (place >= this.places) return this.max;
    const exact = this.unbend(this.from + place / this.places * this.length);
    const value = this.isWhole ? Math.round(exact) : this.rounded(exact);
    return Math.min(this.max, Math.max(this.min, value));
  }

  rounded(exact) {
    const step = this.knee ? Math.abs(exact) / 100 : (this.max - this.min) / PLACES;
    const digits = Math.min(12, Math.max(0, Math.ceil(-Math.log10(step || 1e-3))));
    return Number(exact.toFixed(digits));
  }
}
