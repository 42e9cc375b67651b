import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { attachedFiles } from './prompt.ts';

const taskOf = (type: string) => ({ harness: { type }, agent_config: {} });

test.each(['notes #2.txt', 'why?.txt', '100%25.txt', 'a b.txt', 'ünï 🙂.txt', 'back\\slash.txt', 'line\nbreak.txt'])(
  'the link to the attachment %j leads to its file',
  (name) => {
    const path = `/workspace/attachments/${name}`;
    const [link] = attachedFiles(taskOf('claude'), [{ path, name, mimeType: 'text/plain', size: 1 }]);
    if (link?.type !== 'resource_link') throw new Error('it is not a link');
    expect(fileURLToPath(link.uri)).toBe(path);
    expect(new URL(link.uri)).toMatchObject({ hash: '', search: '' });
  },
);

test.each(['gemini', 'opencode'])(
  'the prompt for %s has only the paths of attached files, because this harness would send the content of linked files to its model',
  (type) => {
    const file = { path: '/workspace/attachments/a.js', name: 'a.js', mimeType: 'text/javascript', size: 2_902_188 };
    const text = 'Attached files:\n- /workspace/attachments/a.js (text/javascript, 2.8 MB)';
    expect(attachedFiles(taskOf(type), [file])).toEqual([{ type: 'text', text }]);
    expect(attachedFiles(taskOf(type), [])).toEqual([]);
  },
);
