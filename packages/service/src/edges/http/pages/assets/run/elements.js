/** Returns the element of the page with this id. */
export const by = (id) => document.getElementById(id);

/** Makes an element. Text is set by `textContent`, so it is never read as markup. */
export const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

/** Announces one sentence to screen readers. A later one of the same announcer takes its place. */
export const announce = (text, announcer = 'announcer') => {
  by(announcer).textContent = text;
};
