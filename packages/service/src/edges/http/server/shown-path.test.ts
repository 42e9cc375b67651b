import { expect, test } from 'vitest';
import { withoutToken } from './shown-path.ts';

const uid = 'Abcdefghij0123456789Zz';
const token = 'correct-horse.battery~staple';

test.each([
  `/webhooks/w/${uid}/${token}`,
  `//webhooks//w//${uid}//${token}`,
  `/WebHooks/W/${uid}/${token}/`,
  `/webhooks/w/${uid}/x/${token}`,
  `/webhooks/w/${uid}%2F${token}`,
  `/webhooks/w/${uid}%252F${token}`,
  `/webhooks/w/${uid}%2f${token}%ff`,
  `/webhooks/w/${uid};${token}`,
  `/webhooks/w/${uid}\\${token}`,
  `\\webhooks\\w\\${uid}\\${token}`,
  `/webhooks/w/${uid}%5c${token}`,
  `/webhooks/w/${uid}${token}`,
  `/webhooks/w/${uid}&${token}`,
  `/webhooks/w/${uid.slice(1)}/${token}`,
  `/webhooks/w/${token}`,
  `/webhooks/${uid}/${token}`,
  `/webhook/w/${uid}/${token}`,
  `/hooks/${uid}/${token}`,
  `/w/${uid}/${token}`,
  `/${uid}/${token}`,
  `/webhooks-w-${uid}/${token}`,
  `/runyard/webhooks/w/${uid}/${token}`,
  `/api/v1/webhooks/w/${uid}/${token}`,
  `/api/v1/webhook/w/${uid}/${token}`,
  `/api/v1/w/${uid}/${token}`,
  `/api/webhooks/w/${uid}/${token}`,
  `http://127.0.0.1/webhooks/w/${uid}/${token}`,
])('hides the token in %s', (path) => {
  expect(withoutToken(path)).toMatch(/\{token\}$/);
  expect(withoutToken(path)).not.toMatch(/horse|staple/);
});

test.each([
  `/webhooks/w/${uid}`,
  `/webhooks/w/${uid}/`,
  '/webhooks/w',
  '/',
  '/runs/%E4',
  '/favicon.ico',
  `/api/v1/factory/${uid}/webhoks/${uid}/x`,
  '/api/v1/agent/runs/0193c1f2-7a2b-7c3d-8e4f-5a6b7c8d9e0f/typo',
  '/runs/0193c1f2-7a2b-7c3d-8e4f-5a6b7c8d9e0f',
])('shows %s unchanged', (path) => {
  expect(withoutToken(path)).toBe(path);
});
