import { expect, test } from 'vitest';
import { parseSkill } from './front-matter.ts';

const parse = (text: string, folder: string | null = 'a') => parseSkill(Buffer.from(text), folder);
const good = 'name: a\ndescription: Does a.\n';

test('the name, the description and the text of a skill are read from its SKILL.md', () => {
  const text = `---\n${good}license: MIT\nallowed-tools: Bash(git:*) Read\nmetadata:\n  author: me\n---\n\n# A\n\n---\n\nDo it.\n`;
  expect(parse(text)).toEqual({ name: 'a', description: 'Does a.', body: '# A\n\n---\n\nDo it.' });
  expect(parse(text.replaceAll('\n', '\r\n'))).toMatchObject({ name: 'a', description: 'Does a.' });
  expect(parse(`---\nname: top-level\ndescription: |\n  Two\n  lines\n---`, null)).toEqual({
    name: 'top-level',
    description: 'Two\nlines\n',
    body: '',
  });
});

const aliases = `a: &a [x]\n${'bcdefghi'.replaceAll(/./g, (c, at: number) => `${c}: &${c} [*${'abcdefgh'[at]},*${'abcdefgh'[at]}]\n`)}`;

test.each([
  ['no front matter', 'Text', 'first line must be ---'],
  ['front matter in another language', `---js\n{name: process.exit()}\n---`, 'no other language is read'],
  ['front matter without an end', `---\n${good}`, 'second line of --- is missing'],
  ['front matter that is no YAML', '---\nname: [a\n---', 'at line'],
  ['front matter with a tag', '---\nname: !!js/function "function () {}"\ndescription: b\n---', 'at line 2'],
  ['front matter that is a list', '---\n- a\n---', 'is not a list of names and values'],
  ['aliases that expand', `---\n${good}${aliases}---`, 'aliases are not followed'],
  ['endless nesting', `---\n${good}x: ${'['.repeat(3_500)}\n---`, 'nested too deep'],
  ['too much front matter', `---\n${good}x: ${'y'.repeat(5_000)}\n---`, 'more than 4 KB'],
  ['a name that is there twice', `---\n${good}name: b\n---`, 'at line'],
  ['no name', '---\ndescription: a\n---', 'has no name'],
  ['a name that is a number', '---\nname: 1\ndescription: a\n---', 'has no name'],
  ['a name in capitals', '---\nname: A\ndescription: a\n---', 'characters of [a-z0-9-]'],
  ['a name with a hyphen at its end', '---\nname: a-\ndescription: a\n---', 'does not begin or end with a hyphen'],
  ['a name that leaves the folder', '---\nname: ../a\ndescription: a\n---', 'characters of [a-z0-9-]'],
  ['a name that is too long', `---\nname: ${'a'.repeat(65)}\ndescription: a\n---`, '1 to 64'],
  ['a name that its folder has not', '---\nname: b\ndescription: a\n---', 'its folder a'],
  ['no description', '---\nname: a\n---', 'has no description'],
  ['a description that is too long', `---\nname: a\ndescription: ${'d'.repeat(1025)}\n---`, 'more than 1024'],
  ['a description with NUL as an escape', '---\nname: a\ndescription: "a\\0"\n---', 'with a NUL character'],
  ['a description with half a character', '---\nname: a\ndescription: "a\\ud800"\n---', 'half of a surrogate pair'],
  ['a NUL character', `---\n${good}---\n\0`, 'NUL'],
  ['too much text', `---\n${good}---\n${'x'.repeat(70_000)}`, 'larger than 64 KB'],
])('a SKILL.md with %s is refused', (_, text, why) => {
  expect(parse(text)).toEqual(expect.stringContaining(why));
});

test('a SKILL.md that is not UTF-8 is refused', () => {
  expect(parseSkill(Buffer.from([0x2d, 0x2d, 0x2d, 0x0a, 0xff]), 'a')).toBe('is not UTF-8 text');
});

test('front matter cannot change the prototype of objects', () => {
  expect(parse(`---\n${good}__proto__:\n  polluted: true\n---`)).toMatchObject({ name: 'a' });
  expect(Reflect.get({}, 'polluted')).toBeUndefined();
});
