// A refusal of the run: its code, its sentence, and what would do instead, as the command prints them.
import {element} from './elements.js';

export class Refusal extends Error {
  // `error` is that of a JSON-RPC answer.
  constructor(error) {
    super(error.data?.what || error.message);
    this.rpcCode = error.code;
    this.code = error.data?.code || '';
    this.notes = error.data?.notes ?? [];
    this.nearest = error.data?.nearest || '';
    this.edit = error.data?.edit || '';
  }
}

// Shows a refusal. `onEdit`, if given, makes the edit a button.
export function refusalView(refusal, onEdit) {
  const view = element('div', {className: 'refusal', role: 'alert'});
  const code = refusal.code ? [element('code', {}, refusal.code), ': '] : [];
  view.append(element('p', {}, ...code, refusal.message));
  for (const note of refusal.notes ?? []) view.append(element('p', {className: 'note'}, note));
  if (refusal.nearest) view.append(element('p', {className: 'note'}, `did you mean '${refusal.nearest}'?`));
  if (refusal.edit) {
    const edit = onEdit ? element('button', {type: 'button', className: 'edit', onclick: onEdit}, refusal.edit)
                        : element('code', {}, refusal.edit);
    view.append(element('p', {className: 'note'}, 'try: ', edit));
  }
  return view;
}
