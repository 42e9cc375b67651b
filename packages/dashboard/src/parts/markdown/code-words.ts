/** Finds the words of code, in the thread of `worker.ts`. */
import { common, createLowlight } from 'lowlight';
import type { CodeWord, WordKind } from './highlight.ts';

const lowlight = createLowlight(common);

/** The kinds of words for the scopes of highlight.js. Other scopes have no colour. */
const kinds: Readonly<Record<string, WordKind>> = {
  'hljs-attr': 'name',
  'hljs-attribute': 'name',
  'hljs-built_in': 'name',
  'hljs-bullet': 'keyword',
  'hljs-comment': 'comment',
  'hljs-deletion': 'comment',
  'hljs-doctag': 'keyword',
  'hljs-keyword': 'keyword',
  'hljs-link': 'string',
  'hljs-literal': 'number',
  'hljs-meta': 'keyword',
  'hljs-name': 'keyword',
  'hljs-number': 'number',
  'hljs-quote': 'comment',
  'hljs-regexp': 'string',
  'hljs-section': 'title',
  'hljs-selector-class': 'title',
  'hljs-selector-id': 'title',
  'hljs-selector-tag': 'keyword',
  'hljs-string': 'string',
  'hljs-symbol': 'number',
  'hljs-tag': 'keyword',
  'hljs-title': 'title',
  'hljs-type': 'name',
};

type Node = ReturnType<typeof lowlight.highlight>['children'][number];

function addWords(nodes: readonly Node[], kind: WordKind | undefined, lines: CodeWord[][]): void {
  for (const node of nodes) {
    if (node.type === 'element') {
      const names = node.properties.className;
      const own = Array.isArray(names) ? kinds[String(names[0])] : undefined;
      addWords(node.children as Node[], own ?? kind, lines);
    } else if (node.type === 'text')
      for (const [index, text] of node.value.split('\n').entries()) {
        if (index > 0) lines.push([]);
        if (text !== '') lines.at(-1)?.push(kind === undefined ? [text] : [text, kind]);
      }
  }
}

/** Returns the language of a file by the end of its name; undefined if it is unknown. */
function languageOf(name: string): string | undefined {
  const base = name.slice(name.lastIndexOf('/') + 1).toLowerCase();
  const language = base.slice(base.lastIndexOf('.') + 1);
  return lowlight.registered(language) ? language : undefined;
}

/** Returns the words of each line of each text. Returns undefined if the language of the file is unknown. */
export function readCode(name: string, texts: readonly string[]): CodeWord[][][] | undefined {
  const language = languageOf(name);
  if (language === undefined) return undefined;
  return texts.map((text) => {
    const lines: CodeWord[][] = [[]];
    addWords(lowlight.highlight(language, text).children, undefined, lines);
    return lines;
  });
}
