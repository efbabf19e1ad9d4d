// All previews that are open: it opens and closes them, and gives each its samples.
import {Preview} from './preview.js';
import {readSample} from './sample.js';

export class Previews {
  // `onState(preview)`: it was opened, refused or closed.
  constructor(root, connection, onState) {
    Object.assign(this, {root, connection, onState, open: []});
    connection.addEventListener('sample', ({detail}) => this.take(readSample(detail)));
    connection.addEventListener('phase', ({detail}) => {
      if (detail.phase !== 'ready') for (const preview of this.open) preview.forgetTap();
    });
  }

  // Opens a preview of an output, or closes the one that is open.
  toggle(box, port, outputs) {
    const known = this.open.find((preview) => preview.box === box && preview.port === port);
    if (known) {
      known.close();
      return;
    }
    const preview = new Preview(this.connection, {box, port, outputs, onState: (changed) => this.changed(changed)});
    this.open.push(preview);
    this.root.append(preview.root);
    preview.root.scrollIntoView({block: 'nearest'});
    preview.start();
  }

  changed(preview) {
    if (preview.isClosed) this.open = this.open.filter((one) => one !== preview);
    this.onState(preview);
  }

  restart() {
    for (const preview of this.open) preview.start();
  }

  take(sample) { this.open.find(({tap}) => tap === sample.tap)?.take(sample); }

  showAges() {
    for (const preview of this.open) preview.showAge();
  }
}
