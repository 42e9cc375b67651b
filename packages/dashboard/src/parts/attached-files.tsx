/** Files that a person attaches to a prompt or a message. The request contains their bytes. */
import { maxAttachmentBytes, maxAttachments } from '@runyard/contract/limits';
import type { AttachmentInput } from '@runyard/contract/runs/run-request';
import { visibleText } from '@runyard/contract/wire/visible';
import { type ClipboardEvent, type DragEvent, type ReactNode, useRef, useState } from 'react';
import { PlainFailure } from '../api/problem.ts';
import { Chip, Row, Text } from './blocks.tsx';
import { Button } from './controls.tsx';
import { sizeText } from './format.ts';

/** The attached files, and how they change. */
export interface AttachedFiles {
  readonly files: readonly File[];
  /** Why the last files were not attached. */
  readonly problem: unknown;
  readonly add: (added: readonly File[]) => void;
  readonly remove: (file: File) => void;
  readonly clear: () => void;
  /** Attaches the files that the person pastes into a field, or drops onto it. */
  readonly onPaste: (event: ClipboardEvent) => void;
  readonly onDrop: (event: DragEvent) => void;
}

/** Keeps the files that a person attaches. */
export function useAttachedFiles(): AttachedFiles {
  const [files, setFiles] = useState<readonly File[]>([]);
  const [problem, setProblem] = useState<unknown>();
  const add = (added: readonly File[]) => {
    const tooLarge = added.find(({ size }) => size > maxAttachmentBytes);
    const fitting = added.filter((file) => file !== tooLarge && file.size <= maxAttachmentBytes);
    const all = [...files, ...fitting];
    setProblem(
      tooLarge
        ? new PlainFailure(
            `${tooLarge.name} has ${sizeText(tooLarge.size)}; a file has at most ${sizeText(maxAttachmentBytes)}.`,
          )
        : all.length > maxAttachments
          ? new PlainFailure(`At most ${maxAttachments} files can be attached.`)
          : undefined,
    );
    setFiles(all.slice(0, maxAttachments));
  };
  /** Takes the files of an event; a text remains for the field. */
  const take = (event: ClipboardEvent | DragEvent, data: DataTransfer | null) => {
    const given = [...(data?.files ?? [])];
    if (given.length === 0) return;
    event.preventDefault();
    add(given);
  };
  return {
    files,
    problem,
    add,
    remove: (file) => setFiles((before) => before.filter((each) => each !== file)),
    clear: () => setFiles([]),
    onPaste: (event) => take(event, event.clipboardData),
    onDrop: (event) => take(event, event.dataTransfer),
  };
}

/** Returns a file in the form that the API accepts. A data URL has the base64 text after its first comma (RFC 2397). */
export async function encodeFile(file: File): Promise<AttachmentInput> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  return {
    file_name: file.name,
    mime_type: file.type || 'application/octet-stream',
    data: url.slice(url.indexOf(',') + 1),
  };
}

/** Shows the attached files, each with a button that removes it. */
export const FileChips = ({ files, remove }: Pick<AttachedFiles, 'files' | 'remove'>) => (
  <Row wrap>
    {files.map((file, index) => (
      <Chip key={index}>
        {visibleText(file.name)} <Text tone="dim">{sizeText(file.size)}</Text>
        <Button
          kind="ghost"
          small
          icon="x"
          aria-label={`Remove ${visibleText(file.name)}`}
          onClick={() => remove(file)}
        />
      </Chip>
    ))}
  </Row>
);

/** Opens the dialog of the browser that chooses files. `children` shows the button, which calls `choose`. */
export function FilePicker({
  add,
  children,
}: Pick<AttachedFiles, 'add'> & { children: (choose: () => void) => ReactNode }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={({ target }) => {
          add([...(target.files ?? [])]);
          target.value = '';
        }}
      />
      {children(() => input.current?.click())}
    </>
  );
}
