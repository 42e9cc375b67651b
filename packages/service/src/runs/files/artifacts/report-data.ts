/** Checks the member `data` of a request to `POST /harness-support/report-artifact`, by the type of the artifact. */
import { randomUUIDv7 } from 'node:crypto';
import { posix } from 'node:path';
import { maxEventIdLength } from '@runyard/contract/limits';
import type { ArtifactType } from '@runyard/contract/runs/states';
import { parseUntrusted } from '@runyard/contract/wire/parse-untrusted';
import { plainMessage } from '@runyard/contract/wire/plain-message';
import { z } from 'zod';
import type { Fault } from '../../../platform/fault.ts';
import { canonicalUrl } from './external-reference.ts';

const maxPlanLength = 2 * 1024 * 1024;
/** The size is limited, because each answer that shows the run contains the metadata of all its references. */
const maxMetadataLength = 4096;

/** Returns the text without characters that change the text direction: with such characters, `gpj.exe` looks like `exe.jpg`. */
function inReadingOrder(text: string): string {
  return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '');
}

/** 1 to 1,000 characters. */
const Name = z.string().min(1).max(1000).transform(inReadingOrder);
const Short = z.string().max(1000).transform(inReadingOrder);
const Url = z
  .string()
  .refine((text) => canonicalUrl(text) !== null, { error: 'must be an http(s) URL of at most 2048 characters' });
const MediaType = z.string().regex(/^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(; ?charset=[\w-]{1,40})?$/, {
  error: 'must be a media type such as text/plain',
});
const FileName = z
  .string()
  .regex(/^[^/\\\p{Cc}]{1,255}$/u, { error: 'must be 1 to 255 characters without slashes or control characters' })
  .transform(inReadingOrder)
  .refine((name) => name !== '' && name !== '.' && name !== '..', { error: 'must be a file name' });

const schemas = {
  PLAN: z.object({
    document_uid: Short.optional(),
    notebook_uid: Short.optional(),
    title: Short.optional(),
    url: Url.optional(),
    content: z.string().max(maxPlanLength).default(''),
  }),
  PULL_REQUEST: z.object({ url: Url, branch: Name }),
  SCREENSHOT: z.object({ mime_type: MediaType.default('image/png'), description: Short.optional() }),
  FILE: z.object({
    filename: FileName,
    filepath: z.string().min(1).max(4096).transform(inReadingOrder).optional(),
    mime_type: MediaType.default('application/octet-stream'),
    description: Short.optional(),
    title: Short.optional(),
    output_of_action: z.string().max(maxEventIdLength).optional(),
  }),
  EXTERNAL_REFERENCE: z.object({
    reference_type: Name,
    url: Url,
    title: Short.optional(),
    metadata: z
      .record(z.string(), z.unknown())
      .refine((metadata) => JSON.stringify(metadata).length <= maxMetadataLength, {
        error: `must be at most ${maxMetadataLength} characters of JSON`,
      })
      .optional(),
  }),
} satisfies Record<ArtifactType, z.ZodType>;

/** Returns the path without a root and without `..`, because readers append the path to a folder of their own. The result may be empty. */
const relativePath = (text: string): string => posix.join('/', text).replace(/^\/+|\/+$/g, '');

/** The data of a report that is valid for the type of its artifact. */
export interface CheckedReport {
  readonly data: Record<string, unknown>;
  /** True if the artifact has bytes, which the agent uploads next. Readers see the artifact only when these bytes have arrived. */
  readonly isFileLike: boolean;
  readonly canonicalUrl: string | null;
}

/** Checks the data for its type, and adds derived members: uid of a plan, path of a file, canonical URL. */
export function checkReportData(
  type: ArtifactType,
  data: Record<string, unknown>,
): { ok: true; report: CheckedReport } | { ok: false; faults: Fault[] } {
  const parsed = parseUntrusted<Record<string, unknown>>(schemas[type], data, { error: plainMessage });
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => ({
      path: ['data', ...path].map(String).join('.'),
      message,
    }));
    return { ok: false, faults };
  }
  const checked: Record<string, unknown> = { ...parsed.data };
  if (type === 'PLAN') checked.document_uid ??= randomUUIDv7();
  if (type === 'FILE') checked.filepath = relativePath(String(checked.filepath ?? '')) || checked.filename;
  const url = type === 'EXTERNAL_REFERENCE' || type === 'PULL_REQUEST' ? checked.url : undefined;
  return {
    ok: true,
    report: {
      data: checked,
      isFileLike: type === 'FILE' || type === 'SCREENSHOT',
      canonicalUrl: typeof url === 'string' ? canonicalUrl(url) : null,
    },
  };
}
