/** A file that came with the request; its bytes are in the blob store already. */
export interface StoredAttachment {
  readonly id: string;
  readonly fileName: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly sha256: Buffer;
  readonly blobKey: string;
}
