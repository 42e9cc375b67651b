/** Returns the element of the page with this id. */
export const by = (id) => document.getElementById(id);

/** Makes an element. Text is set by `textContent`, so it is never read as markup. */
export const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

/** Announces one sentence to screen readers. */
export const announce = (text) => {
  by('announcer').textContent = text;
};
