import { type ComponentProps, lazy, Suspense, useState } from 'react';
import { RoleButton } from './role-button.tsx';

const ConfirmDialog = lazy(async () => ({ default: (await import('./dialog.tsx')).ConfirmDialog }));

/** A question before an action that cannot be undone. */
export interface Question {
  readonly title: string;
  /** The text below the title. It says what the action changes, and what stays as it is. */
  readonly text: string;
  /** Label of the button that runs the action. */
  readonly action: string;
  /** Label of the other button. Default: Keep. */
  readonly safe?: string;
  readonly run: () => Promise<unknown>;
}

/** Returns a function that asks a question, and the dialog with the question, which the component must show. */
export function useQuestion() {
  const [question, ask] = useState<Question>();
  const dialog = question && (
    <Suspense>
      <ConfirmDialog {...question} close={() => ask(undefined)}>
        {question.text}
      </ConfirmDialog>
    </Suspense>
  );
  return { ask, dialog };
}

/** A button whose action needs a role, and is run only after a question. */
export function AskButton({
  question,
  ...button
}: Omit<ComponentProps<typeof RoleButton>, 'run'> & { question: Question }) {
  const { ask, dialog } = useQuestion();
  return (
    <>
      <RoleButton {...button} run={() => ask(question)} />
      {dialog}
    </>
  );
}
