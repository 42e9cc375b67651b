/**
 * Finds class names of the dashboard that do not come from a CSS module. A module is beside its component, so a reader of an element
 * finds its look, and a rule without a user is noticed.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Matches the import of a module. Groups: the name in the file, the path of the module. */
const moduleImport = /^import (\w+) from '([^']+\.module\.css)';/gm;

/** Returns one sentence for each fault of the files below `packages/dashboard/src`. */
export function findClassFaults(root: string): string[] {
  const folder = path.join(root, 'packages/dashboard/src');
  const styles = new Map(readFiles(folder, '**/*.css').map(([file, text]) => [file, classesOf(text)] as const));
  const used = new Map<string, Set<string>>();
  const faults: string[] = [];
  for (const [file, text] of readFiles(folder, '**/*.{ts,tsx}')) {
    for (const words of stringClasses(text))
      faults.push(
        `${file}: the class name ${words} is a text. Take it from a CSS module, or use a component of parts/.`,
      );
    for (const [, name = '', target = ''] of text.matchAll(moduleImport)) {
      const module = path.join(path.dirname(file), target);
      const classes = styles.get(module) ?? new Set();
      const uses = used.get(module) ?? new Set<string>();
      used.set(module, uses);
      for (const [, word = ''] of text
        .replaceAll(moduleImport, '')
        .matchAll(new RegExp(`(?<![\\w./-])${name}\\.(\\w+)`, 'g'))) {
        uses.add(word);
        if (!classes.has(word)) faults.push(`${file}: ${module} has no class ${word}.`);
      }
      // A name that is computed, such as the state of a run, can be any class of the module.
      if (new RegExp(`\\b${name}\\[`).test(text)) for (const word of classes) uses.add(word);
    }
  }
  for (const [file, classes] of styles)
    for (const word of classes)
      if (!file.endsWith('.module.css')) faults.push(`${file}: .${word} is a global class. Move it to a CSS module.`);
      else if (!used.get(file)?.has(word)) faults.push(`${file}: no component uses .${word}.`);
  return faults;
}

const readFiles = (folder: string, pattern: string): [file: string, text: string][] =>
  globSync(pattern, { cwd: folder })
    .filter((file) => !file.endsWith('.test.ts'))
    .map((file) => [file, readFileSync(path.join(folder, file), 'utf8')]);

/** Returns the class names in the selectors of a style sheet. */
function classesOf(css: string): Set<string> {
  const selectors = css.replaceAll(/\/\*.*?\*\//gs, '').replaceAll(/\{[^{}]*\}/g, '{}');
  return new Set([...selectors.matchAll(/\.([a-zA-Z_][\w-]*)/g)].map(([, word = '']) => word));
}

/** Returns the texts that a source file uses as class names. */
function stringClasses(text: string): string[] {
  const found = [...text.matchAll(/\bclassName(?:: |=| = )(?:"([^"]+)"|'([^']+)')/g)].map(([, a, b]) => a ?? b ?? '');
  for (const { index } of text.matchAll(/\bclassName=\{/g)) {
    const expression = expressionAt(text, index + 'className={'.length)
      .replaceAll(/look\(\{[^}]*\}\)/g, '')
      .replaceAll(/[!=]== '[^']*'/g, '');
    for (const [, literal = ''] of expression.matchAll(/'([^']*)'/g)) found.push(literal);
    for (const [, template = ''] of expression.matchAll(/`([^`]*)`/g))
      found.push(template.replaceAll(/\$\{[^}]*\}/g, ''));
  }
  return found.map((words) => words.trim()).filter(Boolean);
}

/** Returns the text from `start` to the brace that closes the expression. */
function expressionAt(text: string, start: number): string {
  let depth = 1;
  let end = start;
  for (; depth > 0 && end < text.length; end += 1) depth += text[end] === '{' ? 1 : text[end] === '}' ? -1 : 0;
  return text.slice(start, end - 1);
}
