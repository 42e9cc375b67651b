import fc from 'fast-check';
import { lexer, walkTokens } from 'marked';
import { describe, expect, test } from 'vitest';
import { plainLine, sanitize, visibleValue } from './sanitize.ts';

const joiner = '\u2060';

describe('text for GitHub', () => {
  test.each([
    ['a mention', 'ask @octocat and @acme/core', `ask @${joiner}octocat and @${joiner}acme/core`],
    [
      'a mention behind a sign or an entity',
      '(@a) \\@b &#64;c &commat;d',
      `(@${joiner}a) \\@${joiner}b &amp;#64;c &amp;commat;d`,
    ],
    ['an address of mail stays', 'write to a@example.com', 'write to a@example.com'],
    ['a comment', 'a <!-- hidden --> b', 'a &lt;!-- hidden --> b'],
    ['an image', '![alt](https://evil.example/?q=1) and ![x][y]', '[alt](https://evil.example/?q=1) and [x][y]'],
    ['an HTML image', '<img src="https://evil.example">', '&lt;img src="https://evil.example">'],
    ['invisible characters', 'a\u200bb\u202ec\u{e0041}d\ufe0fe\u0000f', 'abcdef'],
    [
      'code stays',
      '```ts\nimport x from "@types/node"; // <b>\n```',
      '```ts\nimport x from "@types/node"; // <b>\n```',
    ],
    ['an open block is closed', '```\n@a', '```\n@a\n```'],
    ['a diagram is shown as code', '```mermaid\ngraph\n```', '```\ngraph\n```'],
    ['a longer fence ends the block', '```\na\n`````\n@b', `\`\`\`\na\n\`\`\`\n@${joiner}b`],
    ['an indented fence ends the block', '```\na\n  ```\n@b', `\`\`\`\na\n\`\`\`\n@${joiner}b`],
  ])('%s', (_name, text, expected) => {
    expect(sanitize(text)).toBe(expected);
  });

  test('a fence in a list or a quotation opens no block, because it ends where that ends', () => {
    for (const before of ['- a\n  ```', '> ```', '   ```', '1. ~~~']) {
      const clean = sanitize(`${before}\n\`\`\`\n@victim <img src=x>\n\`\`\`\n@other`);
      expect(clean.split('\n').filter((line) => /^(\s|[->]|1\.)* ?(`{3}|~{3})/.test(line))).toEqual(['```', '```']);
      expect(clean).toContain(`@${joiner}other`);
    }
  });

  test('is limited, also in an open block', () => {
    const clean = sanitize(`\`\`\`\n${'a'.repeat(100_000)}`);
    expect(clean.length).toBeLessThan(61_000);
    expect(clean.endsWith('\n```')).toBe(true);
  });

  test('has no mention, image or HTML for another Markdown parser, for any text of an agent', () => {
    const parts = [
      '```',
      '~~~',
      '`',
      '@a',
      '<b>',
      '![',
      '!',
      '[',
      '](x)',
      '\n',
      '  ',
      '> ',
      '- ',
      '&#64;b',
      '\u200b',
      'x',
      '\\',
      '\t',
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 40 }), (text) => {
        const seen: string[] = [];
        walkTokens(lexer(sanitize(text.join(''))), (token) => {
          if (token.type === 'image' || token.type === 'html') throw new Error(`${token.type}: ${token.raw}`);
          if (token.type === 'text' && !('tokens' in token && token.tokens)) seen.push(token.text);
        });
        for (const each of seen) expect(each).not.toMatch(/(?<![A-Za-z0-9_])@[A-Za-z0-9]|&(#|commat)/);
      }),
      { numRuns: 3_000 },
    );
  });

  test('a label has no markup', () => {
    expect(plainLine('**a** [b](c)\n| d')).toBe('\\*\\*a\\*\\* \\[b\\](c) \\| d');
  });

  test('a secret with invisible characters inside becomes visible before the search for secrets', () => {
    expect(visibleValue({ a: ['se\u200bcret'], 'k\u200bey': 1 })).toEqual({ a: ['secret'], key: 1 });
  });
});
