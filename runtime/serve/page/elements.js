// Makes elements of the page. All text comes in as text, never as markup: a pipeline may name anything.

// `children` are elements and strings. `properties` are those of the element, but `data-…`, `aria-…` and `role` are
// attributes.
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (/^(data-|aria-|role$)/.test(name)) made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

export function svgElement(tag, attributes = {}) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// Writes text where it differs from what is there: an equal text costs no layout.
export function show(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
