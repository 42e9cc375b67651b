import { ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';

/** Returns the names of the uploads in parts that were begun and neither completed nor aborted. Credentials come from the environment. */
export async function unfinishedUploads(endpoint: string, bucket: string): Promise<string[]> {
  const client = new S3Client({ endpoint, forcePathStyle: true, region: 'us-east-1' });
  try {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
    return Uploads.map(({ Key = '' }) => Key);
  } finally {
    client.destroy();
  }
}
