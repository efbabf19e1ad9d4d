// What becomes of the pictures of a connection, told in the order in which they came: an acknowledgement counts for all
// pictures before it, too. A picture that a decoder refuses at once waits for those that are about to be drawn.

export class Fates {
  // `tell(picture, fate)` is called once for each picture.
  constructor(tell) {
    this.tell = tell;
    this.waiting = []; // {picture, fate}; a fate of 0 is not known yet
  }

  came(picture) { this.waiting.push({picture, fate: 0}); }

  // Of a picture that is none of this connection nothing is told.
  settle(picture, fate) {
    const found = this.waiting.find((one) => one.picture === picture);
    if (!found) return;
    found.fate = fate;
    while (this.waiting[0]?.fate) {
      const first = this.waiting.shift();
      this.tell(first.picture, first.fate);
    }
  }
}
