import { extname } from 'node:path';

/** Media types by the extension of a file name, in lower case. */
const byExtension: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.gz': 'application/gzip',
  '.htm': 'text/html',
  '.html': 'text/html',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.log': 'text/plain',
  '.md': 'text/markdown',
  '.mp4': 'video/mp4',
  '.patch': 'text/x-diff',
  '.diff': 'text/x-diff',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.tar': 'application/x-tar',
  '.txt': 'text/plain',
  '.webm': 'video/webm',
  '.webp': 'image/webp',
  '.xml': 'application/xml',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
  '.zip': 'application/zip',
};

/** Returns the media type that a file's extension suggests. The type is only a hint for downloads, and no decision depends on it. */
export function mimeTypeOf(path: string): string {
  return byExtension[extname(path).toLowerCase()] ?? 'application/octet-stream';
}
