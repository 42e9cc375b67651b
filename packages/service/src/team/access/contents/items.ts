import type { RunContentItem, WithheldRight } from '@runyard/contract/runs/acceptances';
import type { z } from 'zod';
import type { RunContent } from './content.ts';
import type { ExplainedWithheld } from './run-rights.ts';

/** Returns a content of a run as the API shows it. */
export const toContentItem = ({ author, accepted, ...content }: RunContent): z.infer<typeof RunContentItem> => ({
  ...content,
  ...(author ? { author: { type: author.kind, uid: author.uid } } : {}),
  is_accepted: accepted,
});

/** Returns a right that a run does not have as the API shows it. */
export const toWithheldRight = ({ content, ...withheld }: ExplainedWithheld): WithheldRight => ({
  ...withheld,
  ...(content ? { content: toContentItem(content) } : {}),
});
