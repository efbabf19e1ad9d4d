// The line under the header: it says why the page shows nothing new, and what a person can do.
import {element} from './elements.js';
import {refusalView} from './refusal.js';

export class Notice {
  constructor(target, onRetry) {
    this.target = target;
    this.onRetry = onRetry;
  }

  show({phase, words, refusal, reason}) {
    document.body.dataset.phase = phase;
    this.target.hidden = phase === 'ready';
    this.target.replaceChildren();
    if (phase === 'ready') return;
    this.target.append(element('span', {className: 'words'}, words));
    if (phase === 'gone') {
      const again = element('button', {type: 'button', onclick: this.onRetry}, 'Try again');
      const reload = element('button', {type: 'button', onclick: () => location.reload()}, 'Reload');
      this.target.append(' ', again, ' ', reload);
    }
    if (refusal) this.target.append(refusalView(refusal));
    else if (reason && !words.includes(reason)) this.target.append(element('p', {className: 'note'}, reason));
  }
}
