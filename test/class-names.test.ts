import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { findClassFaults } from './checks/class-names.ts';
import { newFolder } from './support/close-at-end.ts';

let root: string;

beforeEach(async () => {
  root = newFolder();
  await mkdir(path.join(root, 'packages/dashboard/src'), { recursive: true });
});

/** Writes the style sheet and the component `part`, and returns the faults. */
async function faultsOf(css: string, element: string): Promise<string[]> {
  const folder = path.join(root, 'packages/dashboard/src');
  await writeFile(path.join(folder, 'part.module.css'), css);
  await writeFile(path.join(folder, 'part.tsx'), `import styles from './part.module.css';\n${element}\n`);
  return findClassFaults(root);
}

test('the check accepts class names from a module, also in a condition and in a template', async () => {
  const css = '.row { gap: 4px; }\n.on { color: red; }';
  const element = `<p className={\`\${styles.row} \${state === 'open' ? styles.on : ''}\`} />`;
  expect(await faultsOf(css, element)).toEqual([]);
});

test.each([
  '<p className="row" />',
  "<p className={isOn ? 'row' : ''} />",
  `<p className={\`row \${styles.on}\`} />`,
  "({ className: 'row' })",
])('the check rejects the text in %s', async (element) => {
  expect(await faultsOf('.on { color: red; }', `${element}; styles.on;`)).toEqual([
    expect.stringMatching(/^part\.tsx: the class name row is a text/),
  ]);
});

test('the check rejects a class that its module does not have, and a class that no component uses', async () => {
  expect(await faultsOf('.row { gap: 4px; }', '<p className={styles.raw} />')).toEqual([
    'part.tsx: part.module.css has no class raw.',
    'part.module.css: no component uses .row.',
  ]);
});

test('the check rejects a class in a style sheet that is not a module', async () => {
  await writeFile(path.join(root, 'packages/dashboard/src/base.css'), '@layer base { .row:hover { gap: 4px; } }');
  expect(findClassFaults(root)).toEqual(['base.css: .row is a global class. Move it to a CSS module.']);
});
