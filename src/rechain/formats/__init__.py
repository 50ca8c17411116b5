"""Files of others: datasets and logs of questions, documents, and exports of chains."""
