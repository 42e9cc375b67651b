import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { fileLinks } from './prompt.ts';

test.each(['notes #2.txt', 'why?.txt', '100%25.txt', 'a b.txt', 'ünï 🙂.txt', 'back\\slash.txt', 'line\nbreak.txt'])(
  'makes a link to the attachment %j that leads to its file',
  (name) => {
    const path = `/workspace/attachments/${name}`;
    const [link] = fileLinks([{ path, name, mimeType: 'text/plain', size: 1 }]);
    if (link?.type !== 'resource_link') throw new Error('it is not a link');
    expect(fileURLToPath(link.uri)).toBe(path);
    expect(new URL(link.uri)).toMatchObject({ hash: '', search: '' });
  },
);
