import { type ReactNode, useId, useState } from 'react';
import { Button } from './controls.tsx';
import { Dialog } from './dialog.tsx';
import { Form, type OnceHeaders } from './form.tsx';

/** Shows a form in a dialog. The dialog closes when `send` has succeeded. */
export function FormDialog({
  title,
  action,
  send,
  close,
  children,
}: {
  title: string;
  /** Label of the button that sends the form. */
  action: string;
  send: (data: FormData, headers: OnceHeaders) => Promise<unknown>;
  close: () => void;
  children: ReactNode;
}) {
  const form = useId();
  const [isBusy, setBusy] = useState(false);
  return (
    <Dialog
      title={title}
      close={close}
      footer={
        <>
          <Button onClick={close}>Back</Button>
          <Button type="submit" form={form} kind="primary" disabled={isBusy}>
            {action}
          </Button>
        </>
      }
    >
      <Form
        id={form}
        onBusy={setBusy}
        send={async (data, headers) => {
          await send(data, headers);
          close();
        }}
      >
        {children}
      </Form>
    </Dialog>
  );
}
