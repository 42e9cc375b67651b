import { visibleText } from '@runyard/contract/wire/visible';
import { useEffect, useRef } from 'react';
import styles from './markdown.module.css';

/** Shows a Markdown text with headings, lists and links. Until the text is rendered, shows the plain text. */
export function Markdown({ text }: { text: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const controller = new AbortController();
    const show = async () => {
      const { renderMarkdown } = await import('./render.ts');
      const fragment = await renderMarkdown(visibleText(text), controller.signal);
      if (controller.signal.aborted || place.current === null) return;
      if (fragment) place.current.replaceChildren(fragment);
      else place.current.textContent = visibleText(text);
      place.current.classList.toggle(styles.plain ?? '', fragment === undefined);
    };
    // Show the plain text only if nothing is shown yet. Otherwise keep the last rendering until the new rendering is ready, so that a
    // growing text does not flicker.
    if (place.current !== null && !place.current.hasChildNodes()) place.current.textContent = visibleText(text);
    void show();
    return () => controller.abort();
  }, [text]);
  return <div className={`${styles.markdown} ${styles.plain}`} data-part="markdown" ref={place} />;
}
