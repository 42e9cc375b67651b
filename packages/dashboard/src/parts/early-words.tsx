import { type RefObject, useEffect } from 'react';

/** Keeps what a person types until a search field has loaded. Otherwise, these keys would run commands of the page. */
export function EarlyWords({ words }: { words: RefObject<string> }) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { key, ctrlKey, metaKey } = event;
      if (ctrlKey || metaKey || (key.length > 1 && key !== 'Backspace')) return;
      words.current = key === 'Backspace' ? words.current.slice(0, -1) : words.current + key;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    addEventListener('keydown', onKey, true);
    return () => removeEventListener('keydown', onKey, true);
  }, [words]);
  return null;
}
